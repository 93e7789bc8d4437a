//! The largest micro-batch that fits.

use super::bisection::largest;
use headroom_core::estimate::{Estimate, Unsupported, estimate};
use headroom_scenario::{Scenario, settings};

/// The largest micro-batch that fits, and what the next one would need.
#[derive(Clone, Debug, PartialEq)]
pub struct LargestBatch {
    /// The scenario with that micro-batch; `None` where even one sample does not fit.
    pub scenario: Option<Scenario>,
    /// The estimate of that scenario, or of one sample where none fits.
    pub estimate: Estimate,
    /// The estimate of one sample more, unless the largest micro-batch that can be asked for fits.
    pub next: Option<Estimate>,
}

/// Finds it by doubling, then by bisection: memory does not fall as the micro-batch grows.
pub fn largest_batch(scenario: &Scenario) -> Result<LargestBatch, Unsupported> {
    let most = match settings::find("data.micro_batch").map(|setting| setting.value_type) {
        Some(settings::ValueType::Whole { high, .. }) => high,
        _ => 1,
    };
    let with = |micro_batch: u64| {
        let mut scenario = scenario.clone();
        scenario.data.micro_batch = micro_batch;
        scenario
    };
    let at = |micro_batch: u64| estimate(&with(micro_batch));
    let largest = largest(
        1,
        most,
        |_| 1,
        |micro_batch| match at(micro_batch)?.fits {
            Some(fits) => Ok(fits),
            None => Err(Unsupported::UnknownMemory),
        },
    )?;
    Ok(LargestBatch {
        estimate: at(largest.max(1))?,
        next: (0 < largest && largest < most)
            .then(|| at(largest + 1))
            .transpose()?,
        scenario: (largest > 0).then(|| with(largest)),
    })
}
