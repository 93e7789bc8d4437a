//! The rules: each multiplies the weights of the causes that a number supports or contradicts, and says why.

mod around;
mod before;
mod text;

use super::{Cause, Expectation, Failure, Findings, Log, Ranked};
use crate::order::sorted;

/// The weight of each cause so far, and the reasons.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    weights: [f64; 8],
    /// The highest confidence that may be reported; only facts that leave no other explanation raise it.
    pub(super) ceiling: f64,
    reasons: Vec<(f64, String)>,
}

/// The limit where the text cannot tell causes apart.
pub(super) const UNSURE: f64 = 0.6;
/// The limit where the history shows the cause itself, though something else may have happened in the same step.
pub(super) const SHOWN: f64 = 0.7;
/// The limit where a number names the cause.
pub(super) const NAMED: f64 = 0.9;

/// Weighs everything known.
pub(super) fn weigh(findings: &Findings, expected: Option<Expectation>) -> Verdict {
    let mut verdict = Verdict {
        // Priors: a GPU that is too small is the most common cause, the wrong GPU the rarest.
        weights: Cause::ALL.map(|cause| match cause {
            Cause::Capacity => 1.0,
            Cause::Outlier => 0.7,
            Cause::Leak | Cause::Schedule => 0.4,
            Cause::Fragmentation => 0.5,
            Cause::OtherProcess => 0.1,
            Cause::WrongDevice => 0.02,
            Cause::Unknown => 0.05,
        }),
        ceiling: UNSURE,
        reasons: Vec::new(),
    };
    let failure = findings.failure.clone().unwrap_or_default();
    let failure = &completed(failure, findings);
    verdict.source(failure);
    verdict.limit(failure);
    verdict.others(failure, findings);
    verdict.holes(failure);
    verdict.moment(findings);
    verdict.summary(failure, findings);
    match (history(failure, findings), expected) {
        (Some(_), _) => verdict.history(failure, findings),
        (None, Some(expected)) => verdict.scenario(failure, findings, expected),
        (None, None) => {}
    }
    verdict
}

/// The failure, completed from a probe log or a memory summary.
fn completed(mut failure: Failure, findings: &Findings) -> Failure {
    if let Some(failed) = findings.log.as_ref().and_then(|it| it.failed) {
        failure.tried = failure.tried.or(failed.requested);
        failure.free = failure.free.or(failed.free);
        failure.total = failure.total.or(failed.total);
        failure.unallocated = failure
            .unallocated
            .or(Some(failed.reserved - failed.allocated));
        failure.allocated = failure.allocated.or(Some(failed.allocated));
    }
    if let Some(summary) = &findings.summary {
        failure.allocated = failure.allocated.or(summary.allocated.map(|it| it.0));
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
    findings.log.as_ref().filter(|it| !it.steps.is_empty())
}

impl Verdict {
    /// The causes, most likely first, with confidences that sum to at most one.
    pub(super) fn ranking(&self) -> Vec<Ranked> {
        let sum: f64 = self.weights.iter().sum();
        let all = Cause::ALL
            .into_iter()
            .zip(self.weights)
            .map(|(cause, weight)| Ranked {
                cause,
                confidence: weight / sum,
            });
        let mut all = sorted(all, |a, b| b.confidence.total_cmp(&a.confidence));
        for it in &mut all {
            it.confidence = (it.confidence.min(self.ceiling) * 1000.0).round() / 1000.0;
        }
        all
    }

    pub(super) fn evidence(&self) -> Vec<String> {
        sorted(self.reasons.iter().cloned(), |a, b| b.0.total_cmp(&a.0))
            .into_iter()
            .map(|it| it.1)
            .collect()
    }

    /// Multiplies the weights of some causes and keeps the reason.
    pub(super) fn because(&mut self, reason: impl Into<String>, factors: &[(Cause, f64)]) {
        for (cause, factor) in factors {
            self.weights[*cause as usize] *= factor;
        }
        let strength = factors.iter().map(|it| it.1.ln().abs()).fold(0.0, f64::max);
        self.reasons.push((strength, reason.into()));
    }

    pub(super) fn may_say(&mut self, ceiling: f64) {
        self.ceiling = self.ceiling.max(ceiling);
    }
}
