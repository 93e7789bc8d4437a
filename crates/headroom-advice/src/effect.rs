//! What one move does to one run, computed.

use super::moves::Move;
use headroom_core::estimate::{Estimate, Prediction, Unsupported};
use headroom_scenario::Scenario;

/// A run with one move taken.
#[derive(Clone, Debug)]
pub struct Effect {
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// The part of the device memory, at the end of the run, that it saves; negative where it adds.
    pub saved: f64,
    /// By which part a step takes longer; negative where it is faster; `None` where the card's speed is not known.
    pub slower: Option<f64>,
}

/// `None` where the move is not possible in this run, or changes nothing of it.
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
