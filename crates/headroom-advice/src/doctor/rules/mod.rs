//! The rules that read a failure, the most certain first: context before numbers, a log's history before a scenario, the
//! error's numbers alone last. The first rule that applies ranks the causes.

mod errors;
mod history;
mod neighbours;
mod numbers;
mod ranks;
mod repeats;
mod scenario;
mod smi;
mod words;

use super::{Cause, Failure, Findings, Log, PredictedUsage, Ranked};
use headroom_base::order::sorted;

/// The conclusion of a rule: its reason, and the share of each cause among recorded failures of this kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub reason: String,
    pub shares: Vec<(Cause, f64)>,
}

impl Reading {
    fn new(reason: impl Into<String>, shares: &[(Cause, f64)]) -> Self {
        Self {
            reason: reason.into(),
            shares: shares.to_vec(),
        }
    }
}

/// The causes with their shares, and the evidence.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    shares: Vec<(Cause, f64)>,
    pub evidence: Vec<String>,
}

/// Applies the rules in order.
pub(super) fn rank(findings: &Findings, expected: Option<PredictedUsage>) -> Ranking {
    let failure = findings.failure.clone().unwrap_or_default();
    let failure = &completed(failure, findings);
    let log = history(failure, findings);
    let reading = errors::read(failure, findings)
        .or_else(|| ranks::read(failure, findings))
        .or_else(|| neighbours::read(failure, findings, expected))
        .or_else(|| history::read(failure, findings, log?))
        .or_else(|| scenario::grown(findings, expected?))
        .or_else(|| words::read(failure, findings, expected))
        .or_else(|| repeats::read(findings))
        .or_else(|| scenario::read(failure, findings, expected?))
        .or_else(|| numbers::read(failure, findings));
    let reading = reading
        .or_else(|| smi::read(findings))
        .unwrap_or_else(|| numbers::without_numbers(findings));
    let mut evidence = vec![reading.reason];
    evidence.extend(numbers::notes(failure, findings));
    evidence.extend(
        expected
            .and_then(|expected| expected.uneven)
            .map(scenario::uneven),
    );
    Ranking {
        shares: reading.shares,
        evidence,
    }
}

/// The failure, with missing numbers from a probe log or a memory summary.
fn completed(mut failure: Failure, findings: &Findings) -> Failure {
    if let Some(failed) = findings.log.as_ref().and_then(|log| log.failed) {
        failure.tried = failure.tried.or(failed.requested);
        failure.free = failure.free.or(failed.free);
        failure.total = failure.total.or(failed.total);
        failure.unallocated = failure
            .unallocated
            .or(Some(failed.reserved - failed.allocated));
        failure.allocated = failure.allocated.or(Some(failed.allocated));
    }
    if let Some(summary) = &findings.summary {
        failure.allocated = failure.allocated.or(summary.allocated.map(|pair| pair.0));
        failure.unallocated = failure.unallocated.or_else(|| {
            let (allocated, reserved) = (summary.allocated?.0, summary.reserved?.0);
            Some(reserved - allocated)
        });
    }
    failure
}

/// A log with enough steps to compare the failed one with.
fn history<'a>(failure: &Failure, findings: &'a Findings) -> Option<&'a Log> {
    failure.allocated?;
    findings.log.as_ref().filter(|log| !log.steps.is_empty())
}

impl Ranking {
    /// The causes, most likely first, with confidences that sum to at most one.
    pub(super) fn ranking(&self) -> Vec<Ranked> {
        let all = self.shares.iter().map(|(cause, share)| Ranked {
            cause: *cause,
            confidence: (share * 1000.0).round() / 1000.0,
        });
        sorted(all, |a, b| b.confidence.total_cmp(&a.confidence))
    }
}
