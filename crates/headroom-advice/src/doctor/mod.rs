//! The doctor: why a run ran out of memory, from the text of the error and whatever else is known.
//!
//! Words come before numbers: what the program did, whether it is PyTorch at all. The error's numbers alone prove little: memory
//! that is reserved but unallocated is large for every cause, and PyTorch prints the same hint for all of them. So causes are ranked, each with the
//! numbers that support it, and the diagnosis says what would make it more certain: the step, the scenario, a probe log.

mod advice;
mod calibration;
mod cause;
mod message;
mod moment;
mod probe;
mod ranks;
mod rules;
mod scan;
mod signs;
mod tables;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use advice::Change;
pub use calibration::{Calibration, uncorrected};
pub use cause::Cause;
pub use message::{Failure, Source};
pub use moment::Moment;
pub use probe::{Drift, Log, LoggedStep};
pub use ranks::RankFailure;
pub use signs::{Activity, NcclError, Signs};
pub use tables::{Smi, SmiCard, SmiProcess, Summary};

use serde::Serialize;

use headroom_base::units::Bytes;
use headroom_core::allocator::Oom;
use headroom_core::estimate::{Estimate, RankMemory};
use headroom_scenario::Scenario;

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    pub failure: Option<Failure>,
    /// The failures of a job's ranks, where the text tells them apart.
    pub ranks: Vec<RankFailure>,
    pub signs: Signs,
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
    /// How far its pipeline's stages are apart, where one needs noticeably more.
    pub uneven: Option<Uneven>,
}

/// Stages of a pipeline that do not need the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uneven {
    /// The fullest, of so many.
    pub stage: u32,
    pub count: u32,
    /// The peaks of the fullest and of the emptiest.
    pub most: Bytes,
    pub least: Bytes,
}

impl Uneven {
    /// The stages of a job, if they differ by more than a few layers' worth.
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
            uneven: None,
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
    /// No cause stands out: the first is first by little.
    pub undecided: bool,
    /// What the words and the numbers say, what decides first.
    pub evidence: Vec<String>,
    /// What to change.
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// The same in words.
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
            ranks: RankFailure::parse(text),
            signs: Signs::parse(text),
            moment: Moment::parse(text),
            smi: Smi::parse(text),
            summary: Summary::parse(text),
            log: Log::parse(text),
        };
        let holds_any = findings.failure.is_some()
            || findings.smi.is_some()
            || findings.summary.is_some()
            || findings.log.is_some()
            || findings.signs.tell()
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
    let confidence = |place: usize| ranking.get(place).map_or(0.0, |ranked| ranked.confidence);
    let first = ranking.first().copied().unwrap_or(Ranked {
        cause: Cause::Unknown,
        confidence: 0.0,
    });
    let uneven = expected.is_some_and(|expected| expected.uneven.is_some());
    let changes = advice::recommended(&ranking, findings, uneven);
    let undecided = confidence(0) - confidence(1) < CLEAR;
    Diagnosis {
        cause: first.cause,
        confidence: first.confidence,
        undecided,
        advice: changes.iter().map(|change| change.text().into()).collect(),
        changes,
        checks: advice::checks(first.cause, findings, expected.is_some()),
        evidence: verdict.evidence,
        ranking,
    }
}

/// Causes whose shares are closer than this are not told apart.
const CLEAR: f64 = 0.1;
