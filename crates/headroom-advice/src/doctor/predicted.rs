//! What a scenario predicts about its own failure.

use std::num::NonZero;

use serde::Serialize;

use super::{Failure, Findings, Recognized};
use headroom_base::units::Bytes;
use headroom_core::allocator::{Card, Oom};
use headroom_core::estimate::{Estimate, Growth, Prediction, RankMemory, Unsupported};
use headroom_scenario::{Distribution, Scenario};

/// The scenario's predicted memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictedUsage {
    /// The most allocated in a step.
    pub peak: Bytes,
    /// Allocated between steps.
    pub between_steps: Bytes,
    /// Steps between evaluations and between saves; 0 for never, or once an epoch.
    pub eval_every: u64,
    pub save_every: u64,
    /// Its steps, replayed with the memory that was available to the failed process.
    pub replayed: Option<Replayed>,
    /// The imbalance of its pipeline stages, if noticeable.
    pub uneven: Option<StageImbalance>,
    /// The batch whose step makes the failed request.
    pub recognized: Option<Recognized>,
    /// The peak of a typical batch, if the largest decides.
    pub typical: Option<Bytes>,
    /// Whether its batches differ in size.
    pub varies: bool,
    /// What an evaluation leaves behind, and when that fills the GPU.
    pub growth: Option<Growing>,
}

/// Memory that grows by design of the scenario's loop: metrics that nothing resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Growing {
    /// What an epoch leaves behind.
    pub per_epoch: Bytes,
    /// The epoch in which the scenario's own GPU is full.
    pub full_in: Option<u64>,
}

/// Pipeline stages with different memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StageImbalance {
    /// The fullest stage, of `count`.
    pub stage: u32,
    pub count: u32,
    /// The peaks of the fullest and the emptiest stage.
    pub most: Bytes,
    pub least: Bytes,
}

impl StageImbalance {
    /// The imbalance of a job's stages, if it exceeds a tenth.
    pub fn of(ranks: &[RankMemory]) -> Option<Self> {
        const NOTICEABLE: f64 = 1.1;
        let peak = |rank: &&RankMemory| rank.allocated.expected;
        let fullest = ranks.iter().max_by_key(peak)?;
        let (most, least) = (peak(&fullest), ranks.iter().map(|rank| peak(&rank)).min()?);
        let count = ranks.iter().map(|rank| rank.stage).max()?.saturating_add(1);
        (count > 1 && most > least.scale(NOTICEABLE)).then_some(Self {
            stage: fullest.stage,
            count,
            most,
            least,
        })
    }
}

/// The result of replaying steps with the memory available to a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// How many steps were replayed.
    pub steps: usize,
    /// How often the allocator freed its cache and retried.
    pub retries: u64,
    /// The step that failed, counted from 0, and the request.
    pub failed: Option<(usize, Oom)>,
}

impl PredictedUsage {
    pub fn of(scenario: &Scenario, estimate: &Estimate) -> Self {
        let growth = Growth::of(scenario).map(|growth| Growing {
            per_epoch: growth.after(1),
            full_in: estimate.full_in_epoch,
        });
        Self {
            eval_every: scenario.runtime.eval_every.map_or(0, NonZero::get),
            save_every: scenario.runtime.save_every.map_or(0, NonZero::get),
            growth,
            varies: scenario.data.distribution == Distribution::Varying,
            ..Self::from(estimate)
        }
    }
}

impl PredictedUsage {
    /// What the run of a prediction says about a failure: its figures, its steps replayed on the failed process's memory,
    /// and the batch whose step makes the failed request.
    pub fn compared(findings: &Findings, prediction: &Prediction) -> Result<Self, Unsupported> {
        let expected = Self::of(prediction.scenario(), prediction.estimate()?);
        let has_stages = prediction.scenario().parallel.pp > 1;
        let ranks = has_stages.then(|| prediction.ranks()).transpose()?;
        let typical = prediction.typical()?;
        Ok(Self {
            replayed: replayed(findings, prediction, expected.peak)?,
            uneven: ranks.and_then(StageImbalance::of),
            recognized: recognized(findings, prediction),
            typical: typical.map(|typical| typical.allocated.expected),
            ..expected
        })
    }
}

/// The batch of the scenario whose step makes the failed request.
fn recognized(findings: &Findings, prediction: &Prediction) -> Option<Recognized> {
    let (failure, step) = (findings.failure.as_ref()?, findings.moment.step);
    let first = step == Some(0);
    Recognized::find(failure, step, prediction.largest_size(), &mut |size| {
        prediction.step_requests(size, first).ok()
    })
}

/// Replays the scenario's steps up to the failed one, with the memory available to the failed process.
fn replayed(
    findings: &Findings,
    prediction: &Prediction,
    peak: Bytes,
) -> Result<Option<Replayed>, Unsupported> {
    const FEWEST: u64 = 10;
    const MOST: u64 = 300;
    let usable = findings.failure.as_ref().and_then(Failure::usable);
    let Some(usable) = usable.filter(|usable| *usable >= peak) else {
        return Ok(None);
    };
    let steps = findings.moment.step.unwrap_or(0).saturating_add(1);
    let steps = steps.clamp(FEWEST, MOST) as usize;
    let found = prediction.many_steps(steps)?;
    let found = found.on(Card::usable(usable), &prediction.scenario().runtime);
    Ok(Some(Replayed {
        steps,
        retries: found.retries,
        failed: found.failure,
    }))
}

impl From<&Estimate> for PredictedUsage {
    fn from(estimate: &Estimate) -> Self {
        Self {
            peak: estimate.allocated.expected,
            between_steps: estimate.between_steps,
            eval_every: 0,
            save_every: 0,
            replayed: None,
            uneven: None,
            recognized: None,
            typical: None,
            varies: true,
            growth: None,
        }
    }
}
