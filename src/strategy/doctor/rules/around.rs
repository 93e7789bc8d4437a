//! What stood around the failure: other processes, other cards, the step and the phase.

use super::{NAMED, UNSURE, Verdict};
use crate::strategy::doctor::{Cause, Failure, Findings};
use crate::units::Bytes;

impl Verdict {
    /// Memory on the card that is not this process's.
    pub(super) fn others(&mut self, failure: &Failure, findings: &Findings) {
        let listed: Bytes = failure.processes.iter().map(|it| it.1).sum();
        if let Some(total) = failure.total {
            let large = |bytes: Bytes| bytes.get() as f64 >= 0.05 * total.get() as f64;
            let short = failure.tried.unwrap_or_default() - failure.free.unwrap_or_default();
            if large(listed) && listed >= short {
                self.because(
                    format!(
                        "Other processes hold {listed} of the card's {total}; without them this request, short by \
                         {short}, would have been served."
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
                        "{hidden} of the card's {total} belong to nothing the text names: another process, \
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
                    "GPU {device} has {} in use, most of it not by this program, while GPU {} is nearly empty.",
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
    pub(super) fn place(&mut self, findings: &Findings) {
        let place = findings.place;
        if place.evaluating {
            self.because(
                "It happened during an evaluation, which is not part of every step.",
                &[(Cause::Schedule, 12.0)],
            );
        }
        if place.no_batch_fits {
            self.because(
                "A batch-size finder tried every size down to one sample, and none ran.",
                &[(Cause::Capacity, 30.0), (Cause::Outlier, 0.1)],
            );
        }
        if place.saving {
            self.because(
                "It happened while a checkpoint or a copy of the weights was made.",
                &[(Cause::Schedule, 8.0)],
            );
        }
        match place.step {
            Some(step @ 0..=1) => self.because(
                format!("It happened at step {step}: nothing had time to accumulate or to change."),
                &[
                    (Cause::Capacity, 2.0),
                    (Cause::Leak, 0.02),
                    (Cause::Schedule, 0.05),
                    (Cause::Outlier, 0.2),
                ],
            ),
            Some(step @ 2..=9) => self.because(
                format!("It happened at step {step}, before most leaks and schedules show."),
                &[(Cause::Leak, 0.2), (Cause::Schedule, 0.2)],
            ),
            Some(step) => {
                self.because(
                    format!("{step} steps had gone well before: the usual batch fits."),
                    &[(Cause::Capacity, 0.15), (Cause::Outlier, 1.5)],
                );
                // Schedules are written with round numbers, and what they switch on fails then or soon after.
                if step >= 20 && step % 50 <= 2 {
                    self.because(
                        format!(
                            "Step {step} is a round number or just after one, as schedules have."
                        ),
                        &[(Cause::Schedule, 4.0)],
                    );
                }
            }
            None => {}
        }
    }
}

/// What is in use and nobody's: the whole less what is free, this process's own, and the processes listed.
fn hidden(failure: &Failure, listed: Bytes) -> Option<Bytes> {
    // A context and its libraries where the text does not count them.
    let context = Bytes::gib(1.5);
    let own = match failure.in_use {
        Some(own) => own,
        None => failure.reserved()? + context,
    };
    Some(failure.total? - failure.free? - own - listed)
}
