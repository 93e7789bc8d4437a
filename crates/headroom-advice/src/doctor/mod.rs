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
mod predicted;
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
pub use predicted::{Growing, PredictedUsage, Replayed, StageImbalance};
pub use probe::{Log, LoggedStep};
pub use ranks::RankFailure;
pub use recognized::Recognized;
pub use signs::{NcclError, Signs};
pub use tables::{Smi, SmiCard, SmiProcess, Summary};

use serde::Serialize;

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
