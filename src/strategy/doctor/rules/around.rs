//! Rules on the surroundings of the failure: other processes, other GPUs, the step and the phase.

use super::{NAMED, UNSURE, Verdict};
use crate::strategy::doctor::{Cause, Failure, Findings};
use crate::units::Bytes;

impl Verdict {
    /// Memory on the GPU that other processes use.
    pub(super) fn others(&mut self, failure: &Failure, findings: &Findings) {
        let listed: Bytes = failure.processes.iter().map(|it| it.1).sum();
        if let Some(total) = failure.total {
            let large = |bytes: Bytes| bytes.get() as f64 >= 0.05 * total.get() as f64;
            let short = failure.tried.unwrap_or_default() - failure.free.unwrap_or_default();
            if large(listed) && listed >= short {
                self.because(
                    format!(
                        "Other processes use {listed} of the GPU's {total}; without them this request, short by \
                         {short}, would have succeeded."
                    ),
                    &[(Cause::OtherProcess, 300.0)],
                );
                self.may_say(if listed.get() as f64 >= 0.1 * total.get() as f64 {
                    NAMED
                } else {
                    UNSURE
                });
            }
            let hidden = hidden(failure, listed);
            if let Some(hidden) = hidden.filter(|it| large(*it) && *it >= short) {
                self.because(
                    format!(
                        "{hidden} of the GPU's {total} are used by nothing that the text names: another process, \
                         or libraries of this one."
                    ),
                    &[(Cause::OtherProcess, 25.0)],
                );
            }
        }
        let Some(smi) = &findings.smi else {
            return;
        };
        let device = failure.device.unwrap_or(0);
        let card = smi.cards.iter().find(|it| it.index == device);
        let empty = smi
            .cards
            .iter()
            .find(|it| it.index != device && it.used.get() < it.total.get() / 10);
        let own = failure.reserved().unwrap_or_default();
        if let (Some(card), Some(empty)) = (card, empty)
            && card.used > own + Bytes::new(card.total.get() / 4)
        {
            self.because(
                format!(
                    "{} are in use on GPU {device}, mostly not by this program, while GPU {} is nearly empty.",
                    card.used, empty.index
                ),
                &[(Cause::WrongDevice, 100.0), (Cause::OtherProcess, 5.0)],
            );
        }
        let crowd = smi.processes.iter().filter(|it| it.card == device).count();
        if crowd > 1 {
            self.because(
                format!("nvidia-smi lists {crowd} processes on GPU {device}."),
                &[(Cause::OtherProcess, 4.0)],
            );
        }
    }

    /// When it happened.
    pub(super) fn moment(&mut self, findings: &Findings) {
        let moment = findings.moment;
        if moment.evaluating {
            self.because(
                "It happened during an evaluation, which is not part of every step.",
                &[(Cause::Schedule, 12.0)],
            );
        }
        if moment.no_batch_fits {
            self.because(
                "A batch-size finder tried every size down to one sample, and none ran.",
                &[(Cause::Capacity, 30.0), (Cause::Outlier, 0.1)],
            );
        }
        if moment.saving {
            self.because(
                "It happened while a checkpoint was saved or the weights were copied.",
                &[(Cause::Schedule, 8.0)],
            );
        }
        match moment.step {
            Some(step @ 0..=1) => self.because(
                format!("It happened at step {step}: nothing had time to accumulate or change."),
                &[
                    (Cause::Capacity, 2.0),
                    (Cause::Leak, 0.02),
                    (Cause::Schedule, 0.05),
                    (Cause::Outlier, 0.2),
                ],
            ),
            Some(step @ 2..=9) => self.because(
                format!("It happened at step {step}, too early for most leaks and schedules."),
                &[(Cause::Leak, 0.2), (Cause::Schedule, 0.2)],
            ),
            Some(step) => {
                self.because(
                    format!("{step} steps ran before it: the usual batch fits."),
                    &[(Cause::Capacity, 0.15), (Cause::Outlier, 1.5)],
                );
                // Schedules are written with round numbers, and what they switch on fails then or soon after.
                if step >= 20 && step % 50 <= 2 {
                    self.because(
                        format!(
                            "Step {step} is at or just after a round number, as schedules are."
                        ),
                        &[(Cause::Schedule, 4.0)],
                    );
                }
            }
            None => {}
        }
    }
}

/// Memory in use that nobody accounts for: the total less free memory, this process and the processes listed.
fn hidden(failure: &Failure, listed: Bytes) -> Option<Bytes> {
    // A context and its libraries where the text does not count them.
    let context = Bytes::gib(1.5);
    let own = match failure.in_use {
        Some(own) => own,
        None => failure.reserved()? + context,
    };
    Some(failure.total? - failure.free? - own - listed)
}
