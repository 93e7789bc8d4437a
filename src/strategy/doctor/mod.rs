//! The doctor: why a run ran out of memory, from the text of the error and whatever else is known.
//!
//! The error alone proves little: at most another process, or a limit that the program set itself. Memory that is reserved but
//! unallocated is large for every cause, and PyTorch prints the same hint for all of them. So causes are ranked, each with the
//! numbers that support it, and the diagnosis says what would make it more certain: the step, the scenario, a probe log.

mod advice;
mod message;
mod moment;
mod probe;
mod rules;
mod scan;
mod tables;
#[cfg(test)]
mod tests;

pub use message::{Failure, Source};
pub use moment::Moment;
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
    /// The run needs more memory than the GPU has.
    Capacity,
    /// One batch was larger than the ones before.
    Outlier,
    /// Something is kept from step to step.
    Leak,
    /// Enough memory is free, but not contiguous.
    Fragmentation,
    /// Something started at this step: an evaluation, a save, unfreezing, a new loss, longer sequences.
    Schedule,
    OtherProcess,
    /// The program runs on the wrong GPU.
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
    pub moment: Moment,
    pub smi: Option<Smi>,
    pub summary: Option<Summary>,
    pub log: Option<Log>,
}

/// The prediction for the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// The most allocated in a step.
    pub peak: Bytes,
    /// Allocated between steps.
    pub between_steps: Bytes,
    /// Steps between evaluations and between saves; 0 where there are none, or once an epoch.
    pub eval_every: u64,
    pub save_every: u64,
    /// Its steps, replayed with as much memory as the failed process could have had.
    pub replayed: Option<Replayed>,
}

/// The result of replaying steps with the memory of a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// How many steps were replayed.
    pub steps: usize,
    /// How often the allocator had to release its cache to go on.
    pub retries: u64,
    /// The step that failed, counted from 0, and the request.
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

/// The ranked causes, with evidence and advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub cause: Cause,
    pub confidence: f64,
    /// What the numbers say, strongest first.
    pub evidence: Vec<String>,
    /// What to change.
    pub advice: Vec<String>,
    /// What would make the diagnosis more certain.
    pub checks: Vec<String>,
    /// Every cause with its share.
    pub ranking: Vec<Ranked>,
}

impl Findings {
    /// Everything the text holds, in whatever order it was pasted; `None` where it holds none of it.
    pub fn parse(text: &str) -> Option<Self> {
        let findings = Self {
            failure: Failure::parse(text),
            moment: Moment::parse(text),
            smi: Smi::parse(text),
            summary: Summary::parse(text),
            log: Log::parse(text),
        };
        let holds_any = findings.failure.is_some()
            || findings.smi.is_some()
            || findings.summary.is_some()
            || findings.log.is_some()
            || findings.moment.no_batch_fits;
        holds_any.then_some(findings)
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
