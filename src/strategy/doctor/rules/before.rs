//! What was known before the failure: an earlier peak, the scenario, the steps of a probe log.

use super::{NAMED, SHOWN, UNSURE, Verdict};
use crate::strategy::doctor::{Cause, Drift, Expectation, Failure, Findings};
use crate::units::Bytes;

/// Differences below this part of the card are rounding, workspaces, a display.
const NOTICEABLE: f64 = 0.01;
/// A need read off a line through earlier steps is this far off, either way.
const LINE_IS_OFF: f64 = 0.04;

/// As sure as one may be of fragmentation where the same steps in another order just run.
const TIGHT: f64 = 0.5;

impl Verdict {
    /// A peak that was served before.
    pub(super) fn summary(&mut self, failure: &Failure, findings: &Findings) {
        let Some(peak) = findings.summary.as_ref().and_then(|it| it.allocated) else {
            return;
        };
        let (Some(allocated), Some(tried)) = (failure.allocated, failure.tried) else {
            return;
        };
        if peak.1 >= allocated + tried {
            self.because(
                format!(
                    "{} were allocated at once before, more than the {} this request would have made: the run had \
                     fitted.",
                    peak.1,
                    allocated + tried
                ),
                &[
                    (Cause::Fragmentation, 4.0),
                    (Cause::OtherProcess, 2.0),
                    (Cause::Capacity, 0.3),
                    (Cause::Outlier, 0.3),
                    (Cause::Leak, 0.5),
                ],
            );
        }
    }

    /// What the scenario needs against what the process could have had.
    pub(super) fn scenario(
        &mut self,
        failure: &Failure,
        findings: &Findings,
        expected: Expectation,
    ) {
        let (Some(usable), Some(allocated)) = (failure.usable(), failure.allocated) else {
            return;
        };
        let tried = failure.tried.unwrap_or_default();
        let peak = expected.peak;
        let later = findings.place.step.is_some_and(|it| it > 1);
        let others: Bytes = failure.processes.iter().map(|it| it.1).sum();
        self.events(findings, expected);
        self.replayed(usable, others, expected);
        if peak > usable && peak <= usable + others {
            self.because(
                format!(
                    "The scenario's peak of {peak} fits the card, and not the {usable} that other processes left."
                ),
                &[(Cause::OtherProcess, 4.0)],
            );
        } else if peak > usable {
            let reason = format!(
                "The scenario needs {peak} at its peak, and this process could have had {usable} at most."
            );
            // Where steps had gone well, the need came with a batch or with something that began.
            let factors = if later {
                [
                    (Cause::Capacity, 6.0),
                    (Cause::Outlier, 6.0),
                    (Cause::Schedule, 5.0),
                    (Cause::Fragmentation, 0.3),
                    (Cause::Leak, 0.3),
                ]
            } else {
                [
                    (Cause::Capacity, 18.0),
                    (Cause::Outlier, 1.0),
                    (Cause::Schedule, 0.3),
                    (Cause::Fragmentation, 0.3),
                    (Cause::Leak, 0.3),
                ]
            };
            self.because(reason, &factors);
        } else if allocated + tried > peak.scale(1.0 + 2.0 * NOTICEABLE) {
            self.because(
                format!(
                    "{} would have been allocated, where the scenario explains {peak}: something is alive that it does \
                     not have.",
                    allocated + tried
                ),
                &[
                    (Cause::Leak, 6.0),
                    (Cause::Schedule, 6.0),
                    (Cause::Fragmentation, 0.2),
                    (Cause::Capacity, 0.3),
                ],
            );
        } else {
            self.because(
                format!(
                    "The scenario's peak of {peak} fits in the {usable} this process could have had, and no more than \
                     that was asked for: the pieces did not fit."
                ),
                &[
                    (Cause::Fragmentation, 8.0),
                    (Cause::Capacity, 0.3),
                    (Cause::Outlier, 0.3),
                    (Cause::Leak, 0.5),
                    (Cause::Schedule, 0.5),
                ],
            );
        }
    }

    /// Whether the scenario's own steps are refused where so much memory can be had.
    fn replayed(&mut self, usable: Bytes, others: Bytes, expected: Expectation) {
        let Some(replayed) = expected.replayed.filter(|_| expected.peak <= usable) else {
            return;
        };
        match replayed.failed {
            Some((step, oom)) => self.because(
                format!(
                    "Replayed with {usable}, step {step} of the scenario is refused {} with {} allocated and {} held: what is \
                     free lies in pieces.",
                    oom.tried, oom.allocated, oom.reserved
                ),
                // With what other processes hold, they might have run.
                &[
                    (Cause::Fragmentation, 3.0),
                    (Cause::OtherProcess, if others > Bytes::ZERO { 3.0 } else { 1.0 }),
                ],
            ),
            None if replayed.retries > 0 => {
                // Steps in the run's own order may be refused where these are not.
                if self.ceiling <= UNSURE {
                    self.ceiling = TIGHT;
                }
                self.because(
                    format!(
                        "Replayed with {usable}, {} of the scenario's steps run, though only after the allocator gave back \
                         what it did not use.",
                        replayed.steps
                    ),
                    &[(Cause::Leak, 1.2), (Cause::Schedule, 1.2)],
                );
            }
            None => self.because(
                format!(
                    "Replayed with {usable}, {} of the scenario's steps run and none is refused at first: fragmentation \
                     alone does not stop them.",
                    replayed.steps
                ),
                &[
                    (Cause::Fragmentation, 0.05),
                    (Cause::Leak, 2.0),
                    (Cause::Schedule, 2.0),
                ],
            ),
        }
    }

    /// Evaluations and saves that the scenario has, and whether one came at this step or before it.
    fn events(&mut self, findings: &Findings, expected: Expectation) {
        let Some(step) = findings.place.step else {
            return;
        };
        // Steps are counted from 0, events after so many of them.
        let comes = |every: u64| every > 0 && (step + 1).is_multiple_of(every);
        let came = |every: u64| every > 0 && step >= every;
        for (name, every) in [
            ("evaluation", expected.eval_every),
            ("save", expected.save_every),
        ] {
            if comes(every) {
                self.because(
                    format!("The scenario has one {name} every {every} steps, and one came at step {step}."),
                    &[(Cause::Schedule, 8.0)],
                );
            } else if came(every) {
                self.because(
                    format!("There had been a {name} before step {step}, every {every} steps: it may have left something."),
                    &[(Cause::Schedule, 1.5)],
                );
            }
        }
    }

    /// What the steps before show.
    pub(super) fn history(&mut self, failure: &Failure, findings: &Findings) {
        let (Some(log), Some(usable), Some(allocated)) =
            (&findings.log, failure.usable(), failure.allocated)
        else {
            return;
        };
        if self.ceiling >= NAMED {
            // The text has named the cause; what the steps before needed does not change it.
            return;
        }
        let noticeable = usable.scale(NOTICEABLE);
        let failed = log.failed.unwrap_or_default();
        let needed = allocated + failure.tried.unwrap_or_default();
        if failed.evaluating || findings.place.evaluating {
            self.because(
                "The failed step was an evaluation.",
                &[(Cause::Schedule, 300.0)],
            );
            self.may_say(SHOWN);
            return;
        }
        match log.drift(noticeable) {
            Drift::Steady(grown) => {
                self.because(
                    format!("Memory between steps grew all along, by {grown} in all."),
                    &[(Cause::Leak, 300.0)],
                );
                self.may_say(SHOWN);
                return;
            }
            Drift::Jump { step, by } => {
                self.because(
                    format!("Memory between steps rose by {by} at step {step} and stayed there."),
                    &[(Cause::Schedule, 300.0)],
                );
                self.may_say(SHOWN);
                return;
            }
            Drift::None => {}
        }
        let Some(expected) = log.expected_peak(failed.size) else {
            return;
        };
        let sizes = log.sizes();
        let settled = log.settled().count();
        let constant = sizes.is_some_and(|it| it.0 >= it.1) && settled >= 10;
        let changed = failed
            .size
            .zip(sizes)
            .is_some_and(|(size, range)| constant && size > range.1);
        let largest = failed
            .size
            .zip(sizes)
            .is_none_or(|(size, range)| size > range.1);
        let too_much = if settled > 0 && largest {
            Cause::Outlier
        } else {
            Cause::Capacity
        };
        if changed {
            self.because(
                format!("After {settled} steps of one size the batch grew: a schedule changed it."),
                &[(Cause::Schedule, 300.0)],
            );
            self.may_say(SHOWN);
        } else if settled >= 10 && needed > expected.scale(1.03) + noticeable && !largest {
            self.because(
                format!(
                    "The failed step had come to {needed}, where steps of its size needed {expected}: something new \
                     began."
                ),
                &[(Cause::Schedule, 300.0)],
            );
            self.may_say(SHOWN);
        } else if close(expected, usable) {
            let factors = if expected > usable {
                [(too_much, 60.0), (Cause::Fragmentation, 10.0)]
            } else {
                [(too_much, 10.0), (Cause::Fragmentation, 60.0)]
            };
            self.because(
                format!(
                    "Going by the steps before, this batch needs {expected}, too close to the {usable} this process \
                     could have had to tell need from fragmentation."
                ),
                &factors,
            );
        } else if expected.max(needed) > usable {
            self.because(
                format!(
                    "Going by the steps before, this batch needs {expected}, more than the {usable} this process could \
                     have had."
                ),
                &[(too_much, 100.0)],
            );
            self.may_say(SHOWN);
        } else {
            self.because(
                format!(
                    "Going by the steps before, this batch needs {expected}, which fits in the {usable} this process \
                     could have had: the pieces did not fit."
                ),
                &[(Cause::Fragmentation, 100.0)],
            );
            self.may_say(SHOWN);
        }
    }
}

fn close(expected: Bytes, usable: Bytes) -> bool {
    let (expected, usable) = (expected.get() as f64, usable.get() as f64);
    (expected - usable).abs() <= LINE_IS_OFF * usable
}
