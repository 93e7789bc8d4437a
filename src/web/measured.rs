//! A probe's log beside the prediction, and the offset of this machine, which may be laid on every answer.

use leptos::prelude::*;

use super::session::Session;
use super::{chart, markup, saves, text};
use crate::strategy::doctor::{Calibration, Log, calibrate};
use crate::units::{Bytes, UnitStyle};

/// Each step's number and its measured peak.
fn points(log: &Log) -> Vec<(f64, Bytes)> {
    let trained = log.steps.iter().filter(|it| it.step >= 0);
    trained
        .map(|it| (it.step as f64, it.peak_allocated))
        .collect()
}

/// What was measured, what was predicted, and the difference.
fn table(found: &Calibration, units: UnitStyle) -> String {
    let mut rows = vec![
        vec![text::MEASURED.into(), found.measured.show(units)],
        vec![text::PREDICTED.into(), found.predicted.show(units)],
        vec![
            text::OFFSET.into(),
            super::compare::change(found.predicted, found.measured, units),
        ],
    ];
    if let Some(outside) = found.outside {
        rows.push(vec![text::BESIDE.into(), outside.show(units)]);
    }
    markup::table("plain-table", &["Peak of a step", "Allocated"], 1, &rows)
}

/// Shown where the doctor was given a probe's log.
#[component]
pub fn Measured(session: Session, width: ReadSignal<u32>) -> impl IntoView {
    let log = Memo::new(move |_| session.pasted.with(|it| Log::parse(it)));
    let expected = move || session.estimate.get().map(|it| (&*it).into());
    let found = Memo::new(move |_| log.with(|it| calibrate(it.as_ref()?, expected()?)));
    let size = move || chart::size(width.get());
    let drawing = Memo::new(move |_| {
        let predicted = found.get()?.predicted;
        let points = log.with(|it| it.as_ref().map(points))?;
        chart::measured(&points, predicted, session.units.get(), size())
    });
    let numbers = move || found.get().map(|it| table(&it, session.units.get()));
    let file = move || {
        let points = log.with(|it| it.as_ref().map(points)).unwrap_or_default();
        let row = |(step, bytes): &(f64, Bytes)| vec![step.to_string(), bytes.get().to_string()];
        saves::csv("step,peak_allocated_bytes", points.iter().map(row))
    };
    let take = move |_| session.calibration.set(found.get_untracked());
    view! {
        <div hidden=move || found.get().is_none() data-testid="measured">
            <h3>{text::PREDICTED_AND_MEASURED}</h3>
            <figure class="chart">
                <p class="quiet">{move || found.get().map(|it| text::measured_axis(session.units.get(), it.measured.max(it.predicted)))}</p>
                <div class="plot" aria-hidden="true" inner_html=move || drawing.get().unwrap_or_default()></div>
            </figure>
            <div inner_html=move || numbers().unwrap_or_default()></div>
            <div class="actions">
                <button type="button" on:click=take>{text::CALIBRATE}</button>
            </div>
            <saves::Saves
                name="measured" svg=Signal::derive(move || drawing.get()) size=Signal::derive(size) csv=Signal::derive(file)
            />
        </div>
    }
}

/// The answer with this machine's offset, for as long as it is kept.
#[component]
pub fn Calibrated(session: Session) -> impl IntoView {
    let shown = move || {
        let found = session.calibration.get()?;
        let device = session.estimate.get()?.device.expected;
        let words = text::calibrated(&found, device, session.units.get());
        Some(view! {
            <p class="quiet" data-testid="calibrated">
                {words}
                <button type="button" class="plain" on:click=move |_| session.calibration.set(None)>{text::REMOVE}</button>
            </p>
        })
    };
    view! { {shown} }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    const LOG: &str = "{\"step\": 0, \"peak_allocated\": 9663676416, \"allocated\": 1, \"reserved\": 1}\n\
        {\"step\": 1, \"peak_allocated\": 8589934592, \"allocated\": 1, \"reserved\": 1}";

    #[test]
    fn what_was_measured_stands_beside_what_was_predicted() {
        let log = Log::parse(LOG).unwrap();
        assert_eq!(
            points(&log),
            [(0.0, Bytes::gib(9.0)), (1.0, Bytes::gib(8.0))]
        );
        let found = calibrate(&log, (&sample::estimate()).into()).unwrap();
        let html = table(&found, UnitStyle::Binary);
        assert!(
            html.contains("9.00 GiB") && html.contains("8.00 GiB") && html.contains("+1.00 GiB"),
            "{html}"
        );
        let said = text::calibrated(&found, Bytes::gib(10.0), UnitStyle::Binary);
        assert!(said.contains("11.0 GiB"), "{said}");
    }
}
