//! Runs that their users measured: a scenario's link, and what the probe logged (`headroom probe --record`).

use serde::Deserialize;

use super::metric::{Figure, Metric};
use super::record::Numbers;
use super::score::Row;
use headroom_core::estimate::Prediction;
use headroom_scenario::share;

/// A run and its numbers.
#[derive(Debug, Deserialize)]
pub struct Record {
    link: String,
    #[serde(flatten)]
    numbers: Numbers,
}

/// Compares a metric with what is predicted for the link.
pub fn row(record: &Record, id: &str, group: &str, metric: Metric) -> Row {
    Row::compared(
        id,
        group,
        figure(&record.link, metric),
        record.numbers.get(metric),
    )
}

fn figure(link: &str, metric: Metric) -> Result<Figure, String> {
    let opened = share::read(link);
    if let Some(problem) = opened.problems.first() {
        return Err(problem.to_string());
    }
    if let Some(problem) = opened.scenario.check().first() {
        return Err(problem.to_string());
    }
    let prediction = Prediction::new(opened.scenario);
    let estimate = prediction.estimate().map_err(|why| why.to_string())?;
    let banded = |band: headroom_core::estimate::Band| Figure {
        bytes: band.expected.get(),
        band: Some(band),
    };
    let plain = |bytes: headroom_base::units::Bytes| Figure {
        bytes: bytes.get(),
        band: None,
    };
    match metric {
        Metric::Allocated => Some(banded(estimate.allocated)),
        // As the scenario's allocator is set.
        Metric::Reserved | Metric::Expandable => Some(banded(estimate.reserved)),
        Metric::Forward => Some(plain(estimate.forward_end)),
        Metric::Static => Some(plain(estimate.between_steps)),
        Metric::Phase(phase) => {
            let mut phases = estimate.phases.iter();
            let found = phases.find(|part| part.what == phase);
            found.map(|part| plain(part.bytes))
        }
        Metric::Pinned => None,
    }
    .ok_or_else(|| "the run has no such figure".into())
}
