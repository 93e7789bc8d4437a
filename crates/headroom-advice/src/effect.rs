//! The computed effect of one move on one run.

use super::moves::Move;
use headroom_core::estimate::{Estimate, Prediction, Unsupported};
use headroom_scenario::Scenario;

/// A run with one move applied.
#[derive(Clone, Debug)]
pub struct Effect {
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// The share of device memory that it saves by the end of the run; negative if it adds.
    pub saved: f64,
    /// The relative change of step time; negative if faster; `None` if the GPU's speed is unknown.
    pub slower: Option<f64>,
}

/// `None` if the move is impossible in this run or changes nothing.
pub fn effect(before: &Prediction, change: &Move) -> Result<Option<Effect>, Unsupported> {
    let Some(changed) = change.on(before.scenario()) else {
        return Ok(None);
    };
    let after = Prediction::new(changed);
    let seconds = |run: &Prediction| run.step_time().ok().map(|time| time.step.expected.get());
    let slower = seconds(before).zip(seconds(&after));
    let of = |estimate: &Estimate| (estimate.device.expected + estimate.growth).get() as f64;
    let estimate = after.estimate()?;
    Ok(Some(Effect {
        saved: 1.0 - of(estimate) / of(before.estimate()?).max(1.0),
        slower: slower.map(|(before, after)| after / before - 1.0),
        scenario: after.scenario().clone(),
        estimate: estimate.clone(),
    }))
}
