//! What one move does to one run, computed.

use super::moves::Move;
use crate::estimate::time::step_time;
use crate::estimate::{Estimate, Unsupported, estimate};
use crate::scenario::Scenario;

/// A run with one move taken.
#[derive(Clone, Debug)]
pub struct Effect {
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// The part of the device memory that it saves; negative where it adds.
    pub saved: f64,
    /// By which part a step takes longer; negative where it is faster; `None` where the card's speed is not known.
    pub slower: Option<f64>,
}

/// `None` where the move is not possible in this run, or changes nothing of it.
pub fn effect(scenario: &Scenario, it: &Move) -> Result<Option<Effect>, Unsupported> {
    let Some(changed) = (it.apply)(scenario) else {
        return Ok(None);
    };
    let before = estimate(scenario)?;
    let after = estimate(&changed)?;
    let seconds = |scenario: &Scenario| step_time(scenario).ok().map(|it| it.step.expected.get());
    let slower = seconds(scenario).zip(seconds(&changed));
    let of = |estimate: &Estimate| estimate.device.expected.get() as f64;
    Ok(Some(Effect {
        saved: 1.0 - of(&after) / of(&before).max(1.0),
        slower: slower.map(|(before, after)| after / before - 1.0),
        scenario: changed,
        estimate: after,
    }))
}
