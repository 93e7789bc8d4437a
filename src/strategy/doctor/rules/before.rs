//! Rules on what came before the failure: an earlier peak, the scenario, the steps of a probe log.

use super::{NAMED, SHOWN, UNSURE, Verdict};
use crate::strategy::doctor::{Cause, Drift, Expectation, Failure, Findings};
use crate::units::Bytes;

/// Differences below this share of the GPU are rounding, workspaces, a display.
const NOTICEABLE: f64 = 0.01;
/// The error of a peak extrapolated from earlier steps, either way.
const LINE_IS_OFF: f64 = 0.04;

/// The limit for fragmentation where the same steps in another order barely run.
const TIGHT: f64 = 0.5;

impl Verdict {
    /// An earlier, larger peak.
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
                    "{} were allocated at an earlier peak, more than the {} with this request: the run did fit \
                     before.",
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

    /// The predicted peak against the memory that the process could have had.
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
        let later = findings.moment.step.is_some_and(|it| it > 1);
        let others: Bytes = failure.processes.iter().map(|it| it.1).sum();
        self.events(findings, expected);
        self.replayed(usable, others, expected);
        if peak > usable && peak <= usable + others {
            self.because(
                format!(
                    "The scenario's peak of {peak} fits the GPU, but not the {usable} that other processes left."
                ),
                &[(Cause::OtherProcess, 4.0)],
            );
        } else if peak > usable {
            let reason = format!(
                "The scenario needs {peak} at its peak; this process could have had {usable} at most."
            );
            // After steps that ran, it was one batch or something that started.
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
                    "{} would have been allocated, but the scenario explains only {peak}: something else is alive \
                     that it does not contain.",
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
                    "The scenario's peak of {peak} fits in the {usable} that this process could have had, and no more than \
                     that was requested: the free memory was not contiguous."
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

    /// Whether the scenario's own steps fail with this much memory.
    fn replayed(&mut self, usable: Bytes, others: Bytes, expected: Expectation) {
        let Some(replayed) = expected.replayed.filter(|_| expected.peak <= usable) else {
            return;
        };
        match replayed.failed {
            Some((step, oom)) => self.because(
                format!(
                    "Replayed with {usable}, step {step} of the scenario fails to get {} with {} allocated and {} reserved: \
                     the free memory is fragmented.",
                    oom.tried, oom.allocated, oom.reserved
                ),
                // With the memory of the other processes, they might have run.
                &[
                    (Cause::Fragmentation, 3.0),
                    (Cause::OtherProcess, if others > Bytes::ZERO { 3.0 } else { 1.0 }),
                ],
            ),
            None if replayed.retries > 0 => {
                // Steps in the run's own order may fail where these do not.
                if self.ceiling <= UNSURE {
                    self.ceiling = TIGHT;
                }
                self.because(
                    format!(
                        "Replayed with {usable}, {} of the scenario's steps run, but only after the allocator released \
                         its cache.",
                        replayed.steps
                    ),
                    &[(Cause::Leak, 1.2), (Cause::Schedule, 1.2)],
                );
            }
            None => self.because(
                format!(
                    "Replayed with {usable}, {} of the scenario's steps run without a retry: fragmentation alone does \
                     not stop them.",
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

    /// The scenario's evaluations and saves, and whether one came at this step or before it.
    fn events(&mut self, findings: &Findings, expected: Expectation) {
        let Some(step) = findings.moment.step else {
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
                    format!("The scenario has one {name} every {every} steps, and one was at step {step}."),
                    &[(Cause::Schedule, 8.0)],
                );
            } else if came(every) {
                self.because(
                    format!("The scenario has one {name} every {every} steps, so there was one before step {step}: it may have left something behind."),
                    &[(Cause::Schedule, 1.5)],
                );
            }
        }
    }

    /// The earlier steps of a probe log.
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
        if failed.evaluating || findings.moment.evaluating {
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
                    format!("Memory between steps grew steadily, by {grown} in total."),
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
                    "The failed step had reached {needed}, but earlier steps of its size needed {expected}: something new \
                     started."
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
                    "Judging by earlier steps, this batch needs {expected}, too close to the {usable} that this process \
                     could have had to tell capacity from fragmentation."
                ),
                &factors,
            );
        } else if expected.max(needed) > usable {
            self.because(
                format!(
                    "Judging by earlier steps, this batch needs {expected}, more than the {usable} that this process could \
                     have had."
                ),
                &[(too_much, 100.0)],
            );
            self.may_say(SHOWN);
        } else {
            self.because(
                format!(
                    "Judging by earlier steps, this batch needs {expected}, which fits in the {usable} that this process \
                     could have had: the free memory was not contiguous."
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
