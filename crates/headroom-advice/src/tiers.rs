//! Tiers: how full the GPU may be, from safe to maximum, each with a run that can be started.

use super::goal::Goal;
use super::micro::{all, first_that_fits, with_batch};
use super::planner::{Axis, Edit, Locks, Plan, plan};
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{Estimate, Prediction, Unsupported, estimate, quick_peak};
use headroom_scenario::Scenario;

/// How full the GPU may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Safe,
    Medium,
    Aggressive,
    Maximum,
}

impl Tier {
    pub const ALL: [Self; 4] = [Self::Safe, Self::Medium, Self::Aggressive, Self::Maximum];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Medium => "medium",
            Self::Aggressive => "aggressive",
            Self::Maximum => "maximum",
        }
    }

    /// The share of usable memory that the run may use.
    pub const fn target(self) -> f64 {
        match self {
            Self::Safe => 0.70,
            Self::Medium => 0.80,
            Self::Aggressive => 0.90,
            Self::Maximum => 0.98,
        }
    }

    /// Its use.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Safe => "Leaves room for varying batch lengths, evaluation and a desktop.",
            Self::Medium => {
                "Leaves room for fragmentation over a long run and an occasional larger batch."
            }
            Self::Aggressive => "For constant batch sizes on a dedicated GPU.",
            Self::Maximum => "No margin: one long batch will crash it.",
        }
    }

    /// The share that stays free, in a run that fits surely.
    pub fn goal(self) -> Goal {
        Goal::with_margin(1.0 - self.target()).surely()
    }
}

/// A run for a tier.
#[derive(Clone, Debug)]
pub struct Variant {
    pub tier: Tier,
    /// The run with the largest micro-batch within the target that keeps the effective batch; if not even one sample is,
    /// the planner's run with the fewest changes, or else with the mildest change of training; `None` if nothing fits.
    pub scenario: Option<Scenario>,
    /// For that run, or for a micro-batch of one if nothing fits.
    pub estimate: Estimate,
    pub time: Option<StepTime>,
    /// The way to it, if more than the micro-batch changes.
    pub plan: Option<Plan>,
}

impl Variant {
    /// The ids of the changes besides the micro-batch.
    pub fn changes(&self) -> Vec<String> {
        let changes = self.plan.iter().flat_map(|plan| &plan.changes);
        let edits = changes.flat_map(|change| &change.edits);
        edits
            .filter(|edit| edit.axis() != Axis::MicroBatch)
            .map(Edit::id)
            .collect()
    }
}

/// All four tiers, within these locks.
pub fn tiers(scenario: &Scenario, locks: &Locks) -> Result<Vec<Variant>, Unsupported> {
    let prediction = Prediction::new(scenario.clone());
    let tier = |tier: Tier| filled(&prediction, tier, locks);
    Tier::ALL.map(tier).into_iter().collect()
}

/// The fullest run within the tier's share.
pub(super) fn filled(
    prediction: &Prediction,
    tier: Tier,
    locks: &Locks,
) -> Result<Variant, Unsupported> {
    let scenario = prediction.scenario();
    let goal = tier.goal();
    if let Some(found) = largest(scenario, prediction.estimate()?, goal)? {
        return variant(tier, found, None);
    }
    let locks = Locks {
        goal,
        ..locks.clone()
    };
    let plans = plan(scenario, locks)?;
    let unlocked = plans.unlock.into_iter().map(|unlock| unlock.plan);
    match plans.plans.into_iter().chain(unlocked).next() {
        Some(plan) => {
            // The changes may allow a larger micro-batch.
            let found = largest(&plan.full.scenario, &plan.full.estimate, goal)?;
            let found = found.unwrap_or_else(|| plan.full.scenario.clone());
            variant(tier, found, Some(plan))
        }
        None => Ok(Variant {
            tier,
            scenario: None,
            estimate: estimate(&with_batch(scenario, 1))?,
            time: None,
            plan: None,
        }),
    }
}

fn variant(tier: Tier, scenario: Scenario, plan: Option<Plan>) -> Result<Variant, Unsupported> {
    let prediction = Prediction::new(scenario);
    Ok(Variant {
        tier,
        estimate: prediction.estimate()?.clone(),
        time: prediction.step_time().ok(),
        scenario: Some(prediction.scenario().clone()),
        plan,
    })
}

/// The scenario with the largest micro-batch that keeps the effective batch and meets the goal. Allocated memory falls with
/// the micro-batch, but reserved memory may not, so each one from the first that could fit is fully estimated.
pub(super) fn largest(
    scenario: &Scenario,
    whole: &Estimate,
    goal: Goal,
) -> Result<Option<Scenario>, Unsupported> {
    let sizes = all(scenario);
    let allowance = goal.allowance(whole)?;
    let could = |size| match quick_peak(&with_batch(scenario, size)) {
        Ok(peak) => Ok(peak <= allowance),
        // Smaller ones mean even more passes.
        Err(Unsupported::TooMuchWork) => Ok(true),
        Err(other) => Err(other),
    };
    let Some(first) = first_that_fits(&sizes, could)? else {
        return Ok(None);
    };
    for size in sizes.into_iter().filter(|size| *size <= first) {
        let run = with_batch(scenario, size);
        if goal.met_by(&run)? {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
