//! Why a run ran out of memory: from the error's text, and from whatever else is known.
//!
//! An error alone tells little for certain: another process, or a limit the program set itself. Memory reserved but
//! unallocated is large for every cause, and PyTorch prints the same hint for all. So causes are ranked, each with the
//! numbers that speak for it, and the diagnosis says what would make it surer: the step, the scenario, a probe log.

mod advice;
mod message;
mod place;
mod probe;
mod rules;
mod scan;
mod tables;
#[cfg(test)]
mod tests;

pub use message::{Failure, Source};
pub use place::Place;
pub use probe::{Calibration, Drift, Log, Step, calibrate};
pub use tables::{Smi, SmiCard, SmiProcess, Summary};

use serde::Serialize;

use crate::allocator::Oom;
use crate::estimate::Estimate;
use crate::scenario::Scenario;
use crate::units::Bytes;

/// Why memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The run needs more than the card has.
    Capacity,
    /// One batch was larger than those before.
    Outlier,
    /// Something is kept from step to step.
    Leak,
    /// There would be enough, but not in one piece.
    Fragmentation,
    /// Something began at this step: an evaluation, a save, unfreezing, a new loss, longer sequences.
    Schedule,
    OtherProcess,
    /// The program runs on another card than meant.
    WrongDevice,
    Unknown,
}

impl Cause {
    pub const ALL: [Self; 8] = [
        Self::Capacity,
        Self::Outlier,
        Self::Leak,
        Self::Fragmentation,
        Self::Schedule,
        Self::OtherProcess,
        Self::WrongDevice,
        Self::Unknown,
    ];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Outlier => "outlier",
            Self::Leak => "leak",
            Self::Fragmentation => "fragmentation",
            Self::Schedule => "schedule",
            Self::OtherProcess => "other-process",
            Self::WrongDevice => "wrong-device",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    pub failure: Option<Failure>,
    pub place: Place,
    pub smi: Option<Smi>,
    pub summary: Option<Summary>,
    pub log: Option<Log>,
}

/// What the scenario was predicted to need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// The most allocated in a step.
    pub peak: Bytes,
    /// Allocated between steps.
    pub between_steps: Bytes,
    /// Steps between evaluations and between saves; 0 where there are none, or once an epoch.
    pub eval_every: u64,
    pub save_every: u64,
    /// Its steps, gone through with as much memory as the failed process could have had.
    pub replayed: Option<Replayed>,
}

/// What became of steps that were gone through with the memory of a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// How many were asked for.
    pub steps: usize,
    /// How often the allocator had to give back what it did not use to go on.
    pub retries: u64,
    /// The one that was refused, counted from 0, and the request.
    pub failed: Option<(usize, Oom)>,
}

impl Expectation {
    pub fn of(scenario: &Scenario, estimate: &Estimate) -> Self {
        Self {
            eval_every: scenario.runtime.eval_every,
            save_every: scenario.runtime.save_every,
            ..Self::from(estimate)
        }
    }
}

impl From<&Estimate> for Expectation {
    fn from(estimate: &Estimate) -> Self {
        Self {
            peak: estimate.allocated.expected,
            between_steps: estimate.between_steps,
            eval_every: 0,
            save_every: 0,
            replayed: None,
        }
    }
}

/// One cause and how sure it is, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub cause: Cause,
    pub confidence: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub cause: Cause,
    pub confidence: f64,
    /// What the numbers say, the weightiest first.
    pub evidence: Vec<String>,
    /// What to change.
    pub advice: Vec<String>,
    /// What would make this surer.
    pub checks: Vec<String>,
    /// Every cause with its share.
    pub ranking: Vec<Ranked>,
}

impl Findings {
    /// Everything the text holds, in whatever order it was pasted; `None` where it holds none of it.
    pub fn parse(text: &str) -> Option<Self> {
        let it = Self {
            failure: Failure::parse(text),
            place: Place::parse(text),
            smi: Smi::parse(text),
            summary: Summary::parse(text),
            log: Log::parse(text),
        };
        let holds_any = it.failure.is_some()
            || it.smi.is_some()
            || it.summary.is_some()
            || it.log.is_some()
            || it.place.no_batch_fits;
        holds_any.then_some(it)
    }
}

/// The module that writes probe logs, to be saved as `headroom_probe.py` beside the training script.
pub const PROBE: &str = include_str!("headroom_probe.py");

/// Ranks the causes.
pub fn diagnose(findings: &Findings, expected: Option<Expectation>) -> Diagnosis {
    let verdict = rules::weigh(findings, expected);
    let ranking = verdict.ranking();
    let first = ranking.first().copied().unwrap_or(Ranked {
        cause: Cause::Unknown,
        confidence: 0.0,
    });
    Diagnosis {
        cause: first.cause,
        confidence: first.confidence,
        advice: advice::changes(first.cause, findings),
        checks: advice::checks(first.cause, findings, expected.is_some()),
        evidence: verdict.evidence(),
        ranking,
    }
}
