//! A probe's log beside the prediction, and the offset of this machine, which may be laid on every answer.

use leptos::prelude::*;

use super::part::Part;
use super::session::Session;
use super::signals::memo;
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
pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let log = memo(move || session.pasted.with(|it| Log::parse(it)));
    let expected = move || session.estimate.get().map(|it| (&*it).into());
    let found = memo(move || log.with(|it| calibrate(it.as_ref()?, expected()?)));
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
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
    let axis = move || {
        let axis = |it: Calibration| {
            text::measured_axis(session.units.get(), it.measured.max(it.predicted))
        };
        found.get().map(axis).unwrap_or_default()
    };
    Part::new(&format!(
        r#"<div data-testid="measured">
            <h3>{}</h3>
            <figure class="chart">
                <p class="quiet"></p>
                <div class="plot" aria-hidden="true"></div>
            </figure>
            <div class="table"></div>
            <div class="actions"><button type="button">{}</button></div>
            <slot name="saves"></slot>
        </div>"#,
        text::PREDICTED_AND_MEASURED,
        text::CALIBRATE
    ))
    .flag("", "hidden", move || found.get().is_none())
    .text("p", axis)
    .html(".plot", move || drawing.get().unwrap_or_default())
    .html(".table", move || numbers().unwrap_or_default())
    .on("button", "click", take)
    .put(
        "saves",
        saves::view("measured", move || drawing.get(), size, file),
    )
}

/// The answer with this machine's offset, for as long as it is kept.
pub fn calibrated(session: Session) -> Part {
    let words = move || {
        let found = session.calibration.get()?;
        let device = session.estimate.get()?.device.expected;
        Some(text::calibrated(&found, device, session.units.get()))
    };
    Part::new(r#"<div class="contents"></div>"#).shows("", move || {
        let html = format!(
            r#"<p class="quiet" data-testid="calibrated">{}<button type="button" class="plain">{}</button></p>"#,
            markup::escape(&words()?),
            text::REMOVE
        );
        let remove = move |_| session.calibration.set(None);
        Some(Part::new(&html).on("button", "click", remove))
    })
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
