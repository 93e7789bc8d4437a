//! A probe log compared with the prediction, and the correction for this machine.

use leptos::prelude::*;

use crate::shared::saves::Saves;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::table::Table;
use crate::shared::{chart, saves};
use crate::text;
use headroom_advice::doctor::{Calibration, Log, uncorrected};
use headroom_base::units::{Bytes, UnitStyle};

/// Each step's number and its measured peak.
fn points(log: &Log) -> Vec<(f64, Bytes)> {
    let trained = log.steps.iter().filter(|step| step.step >= 0);
    trained
        .map(|step| (step.step as f64, step.peak_allocated))
        .collect()
}

/// Measured, predicted, and the difference.
fn rows(found: &Calibration, units: UnitStyle) -> Vec<Vec<String>> {
    let difference = crate::change::compare::change(found.predicted, found.measured, units);
    let mut rows = vec![
        vec![text::MEASURED.into(), found.measured.show(units)],
        vec![text::PREDICTED.into(), found.predicted.show(units)],
        vec![text::OFFSET.into(), difference],
    ];
    if let Some(outside) = found.outside {
        rows.push(vec![text::OUTSIDE_PYTORCH.into(), outside.show(units)]);
    }
    rows
}

/// A probe log compared with the prediction, if the doctor was given one.
#[component]
pub fn Measured(width: ReadSignal<u32>) -> impl IntoView {
    let session = Session::current();
    let log = memo(move || session.pasted.with(|text| Log::parse(text)));
    let predicted = move || Some(session.estimate.get()?.allocated.expected);
    let found = memo(move || log.with(|log| Calibration::of_log(log.as_ref()?, predicted()?)));
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        let predicted = found.get()?.predicted;
        let points = log.with(|log| log.as_ref().map(points))?;
        chart::measured(&points, predicted, session.units.get(), size())
    });
    let file = move || {
        let points = log.with(|log| log.as_ref().map(points)).unwrap_or_default();
        let row = |(step, bytes): &(f64, Bytes)| vec![step.to_string(), bytes.get().to_string()];
        saves::csv("step,peak_allocated_bytes", points.iter().map(row))
    };
    let take = move |_| {
        if let Some(found) = found.get_untracked() {
            correct(session, &found);
        }
    };
    let axis = move || {
        let largest = |found: Calibration| found.measured.max(found.predicted);
        found
            .get()
            .map(|found| text::measured_axis(session.units.get(), largest(found)))
    };
    let table = move || {
        found.get().map(|found| {
            let rows = rows(&found, session.units.get());
            view! { <Table class="plain-table" head=vec!["Peak of a step", "Allocated"] numbers=1 rows/> }
        })
    };
    view! {
        <Show when=move || found.with(Option::is_some)>
            <div data-testid="measured">
                <h3>{text::PREDICTED_AND_MEASURED}</h3>
                <figure class="chart">
                    <p class="quiet">{axis}</p>
                    <div class="plot" aria-hidden="true" inner_html=move || drawing.get().unwrap_or_default()></div>
                </figure>
                {table}
                <div class="actions"><button type="button" on:click=take>{text::CALIBRATE}</button></div>
                <Saves name="measured" svg=move || drawing.get() size csv=file/>
            </div>
        </Show>
    }
}

/// Applies the correction to the scenario, and so to every later answer and link.
pub fn correct(session: Session, found: &Calibration) {
    let corrected = session
        .scenario
        .with_untracked(|scenario| found.correct(scenario));
    session.replace(corrected);
}

/// The applied correction, and a button to remove it.
#[component]
pub fn Calibrated() -> impl IntoView {
    let session = Session::current();
    let words = move || {
        let units = session.units.get();
        session
            .scenario
            .with(|scenario| text::corrected(&scenario.runtime, units))
    };
    move || {
        words().map(|words| {
            let remove = move |_| session.replace(session.scenario.with_untracked(uncorrected));
            view! {
                <p class="quiet" data-testid="calibrated">
                    {words}<button type="button" class="plain" on:click=remove>{text::REMOVE}</button>
                </p>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;
    use headroom_scenario::Scenario;

    const LOG: &str = "{\"step\": 0, \"peak_allocated\": 9663676416, \"allocated\": 1, \"reserved\": 1}\n\
        {\"step\": 1, \"peak_allocated\": 8589934592, \"allocated\": 1, \"reserved\": 1}";

    #[test]
    fn measured_and_predicted_are_compared() {
        let log = Log::parse(LOG).unwrap();
        assert_eq!(
            points(&log),
            [(0.0, Bytes::gib(9.0)), (1.0, Bytes::gib(8.0))]
        );
        let predicted = sample::estimate().allocated.expected;
        let found = Calibration::of_log(&log, predicted).unwrap();
        let rows = rows(&found, UnitStyle::Binary);
        let sizes: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(sizes, ["9.00 GiB", "8.00 GiB", "+1.00 GiB"]);
        let corrected = found.correct(&Scenario::default());
        let shown = text::corrected(&corrected.runtime, UnitStyle::Binary).unwrap();
        assert!(shown.contains("1.00 GiB"), "{shown}");
        let plain = uncorrected(&corrected);
        assert_eq!(text::corrected(&plain.runtime, UnitStyle::Binary), None);
    }
}
