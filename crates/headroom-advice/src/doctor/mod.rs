//! The doctor: why a run ran out of memory, from the text of the error and whatever else is known.
//!
//! Context comes before numbers: what the program was doing, whether it is PyTorch at all. The error's numbers alone prove
//! little: reserved but unallocated memory is large for every cause, and PyTorch prints the same hint for all of them. So
//! causes are ranked with their evidence, and the diagnosis lists what would make it more certain: the step, the scenario,
//! a probe log.

mod activity;
mod advice;
mod calibration;
mod cause;
mod drift;
mod keywords;
mod memory_lines;
mod message;
mod moment;
mod probe;
mod ranks;
mod recognized;
mod rules;
mod scan;
mod signs;
mod tables;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
mod traceback;
mod vocabulary;

pub use activity::Activity;
pub use advice::Change;
pub use calibration::{Calibration, uncorrected};
pub use cause::Cause;
pub use drift::Drift;
pub use memory_lines::{Counted, MemoryLines, Trend};
pub use message::{Failure, Source};
pub use moment::{Moment, Repeated};
pub use probe::{Log, LoggedStep};
pub use ranks::RankFailure;
pub use recognized::Recognized;
pub use signs::{NcclError, Signs};
pub use tables::{Smi, SmiCard, SmiProcess, Summary};

use std::num::NonZero;

use serde::Serialize;

use headroom_base::units::Bytes;
use headroom_core::allocator::Oom;
use headroom_core::estimate::{Estimate, Growth, RankMemory};
use headroom_scenario::{Distribution, Scenario};

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    pub failure: Option<Failure>,
    /// The failures of a job's ranks, if the text has rank prefixes.
    pub ranks: Vec<RankFailure>,
    pub signs: Signs,
    pub moment: Moment,
    /// Earlier failures in the same text.
    pub repeated: Option<Repeated>,
    pub smi: Option<Smi>,
    pub summary: Option<Summary>,
    pub log: Option<Log>,
    /// Memory that the program printed while it ran.
    pub printed: Option<MemoryLines>,
}

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

/// One cause and how sure it is, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub cause: Cause,
    pub confidence: f64,
}

/// The ranked causes, with evidence and advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub cause: Cause,
    pub confidence: f64,
    /// No cause stands out: the first leads only narrowly.
    pub undecided: bool,
    /// The evidence, the decisive first.
    pub evidence: Vec<String>,
    /// What to change.
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// The same as text.
    pub advice: Vec<String>,
    /// What would make the diagnosis more certain.
    pub checks: Vec<String>,
    /// Every cause with its share.
    pub ranking: Vec<Ranked>,
}

impl Findings {
    /// Everything found in the text, in whatever order it was pasted; `None` if nothing was.
    pub fn parse(text: &str) -> Option<Self> {
        // Progress bars return to the start of their line.
        let text = &text.replace('\r', "\n");
        let findings = Self {
            failure: Failure::parse(text),
            ranks: RankFailure::parse(text),
            signs: Signs::parse(text),
            moment: Moment::parse(text),
            repeated: Repeated::parse(text),
            smi: Smi::parse(text),
            summary: Summary::parse(text),
            log: Log::parse(text),
            printed: MemoryLines::parse(text),
        };
        let holds_any = findings.failure.is_some()
            || findings.smi.is_some()
            || findings.summary.is_some()
            || findings.log.is_some()
            || findings.printed.is_some()
            || findings.signs.any()
            || findings.moment.no_batch_fits;
        holds_any.then_some(findings)
    }
}

/// The module that writes probe logs, to be saved as `headroom_probe.py` next to the training script.
pub const PROBE: &str = include_str!("headroom_probe.py");

/// Ranks the causes.
pub fn diagnose(findings: &Findings, expected: Option<PredictedUsage>) -> Diagnosis {
    let ranked = rules::rank(findings, expected);
    let ranking = ranked.ranking();
    let confidence = |place: usize| ranking.get(place).map_or(0.0, |ranked| ranked.confidence);
    let first = ranking.first().copied().unwrap_or(Ranked {
        cause: Cause::Unknown,
        confidence: 0.0,
    });
    let changes = advice::recommended(&ranking, findings, expected);
    let undecided = confidence(0) - confidence(1) < CLEAR;
    Diagnosis {
        cause: first.cause,
        confidence: first.confidence,
        undecided,
        advice: changes.iter().map(|change| change.text().into()).collect(),
        changes,
        checks: advice::checks(first.cause, findings, expected.is_some()),
        evidence: ranked.evidence,
        ranking,
    }
}

/// Causes with shares closer than this are undecided.
const CLEAR: f64 = 0.1;
