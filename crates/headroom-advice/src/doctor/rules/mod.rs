//! The readings of a failure, the surest first: words before numbers, a log's ledger before a scenario's, and the numbers of
//! the error alone last. The first that can tell ranks the causes; those before it that could not are kept as evidence.

mod errors;
mod history;
mod neighbours;
mod numbers;
mod ranks;
mod scenario;
mod words;

use super::{Cause, Expectation, Failure, Findings, Log, Ranked};
use headroom_base::order::sorted;

/// What a reading makes of a failure: why, and the share of such failures that each cause had among recorded ones.
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

/// The causes with their shares, and what speaks for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Weighed {
    shares: Vec<(Cause, f64)>,
    pub evidence: Vec<String>,
}

/// Reads everything known.
pub(super) fn weigh(findings: &Findings, expected: Option<Expectation>) -> Weighed {
    let failure = findings.failure.clone().unwrap_or_default();
    let failure = &completed(failure, findings);
    let log = history(failure, findings);
    let reading = errors::read(failure, findings)
        .or_else(|| ranks::read(failure, findings))
        .or_else(|| neighbours::read(failure, findings, expected))
        .or_else(|| history::read(failure, findings, log?))
        .or_else(|| words::read(failure, findings))
        .or_else(|| scenario::read(failure, findings, expected?))
        .or_else(|| numbers::read(failure, findings));
    let reading = reading.unwrap_or_else(|| numbers::bare(findings));
    let mut evidence = vec![reading.reason];
    evidence.extend(numbers::notes(failure, findings));
    evidence.extend(
        expected
            .and_then(|expected| expected.uneven)
            .map(scenario::uneven),
    );
    Weighed {
        shares: reading.shares,
        evidence,
    }
}

/// The failure, completed from a probe log or a memory summary.
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

impl Weighed {
    /// The causes, most likely first, with confidences that sum to at most one.
    pub(super) fn ranking(&self) -> Vec<Ranked> {
        let all = self.shares.iter().map(|(cause, share)| Ranked {
            cause: *cause,
            confidence: (share * 1000.0).round() / 1000.0,
        });
        sorted(all, |a, b| b.confidence.total_cmp(&a.confidence))
    }
}
