//! What the numbers of the error itself speak for.

use super::{NAMED, Verdict};
use crate::strategy::doctor::{Cause, Failure, Source};
use crate::units::Bytes;

/// Part of what PyTorch holds that runs with batches of one shape left unallocated at a failure; recorded runs of the
/// real allocator. More than that comes from varying shapes.
const ONE_SHAPE_LEAVES: f64 = 0.15;

impl Verdict {
    /// Errors that did not come from the allocator.
    pub(super) fn doors(&mut self, failure: &Failure) {
        match failure.source {
            Source::Host => self.because(
                "The host ran out of memory, not the GPU: the text names the CPU's allocator or a killed process.",
                &[(Cause::Unknown, 1000.0)],
            ),
            Source::Driver if failure.allocated.is_none() => self.because(
                "The driver refused memory outside PyTorch's allocator, which would have printed its numbers: the card \
                 was full when a context, a library or a kernel was loaded.",
                &[
                    (Cause::OtherProcess, 15.0),
                    (Cause::WrongDevice, 15.0),
                    (Cause::Leak, 0.3),
                    (Cause::Schedule, 0.3),
                    (Cause::Fragmentation, 0.05),
                    (Cause::Outlier, 0.3),
                ],
            ),
            _ => {}
        }
    }

    /// A request refused although the card had the memory.
    pub(super) fn limit(&mut self, failure: &Failure) {
        let (Some(tried), Some(free)) = (failure.tried, failure.free) else {
            return;
        };
        let over = |allowed: Bytes| {
            let reserved = failure.reserved().unwrap_or_default();
            reserved + tried > allowed
        };
        if free < tried {
            return;
        }
        match failure.allowed {
            Some(allowed) if over(allowed) => {
                self.because(
                    format!(
                        "The card had {free} free for a request of {tried}: the limit of {allowed} that \
                         set_per_process_memory_fraction sets refused it."
                    ),
                    &[(Cause::Capacity, 60.0), (Cause::Fragmentation, 0.3)],
                );
                self.may_say(NAMED);
            }
            _ => self.because(
                format!(
                    "The card had {free} free for a request of {tried}, and no limit is named: the driver refused for \
                     another reason, or another process gave memory back in between."
                ),
                &[
                    (Cause::Unknown, 20.0),
                    (Cause::OtherProcess, 4.0),
                    (Cause::Capacity, 0.3),
                ],
            ),
        }
    }

    /// Memory held and not handed out.
    pub(super) fn holes(&mut self, failure: &Failure) {
        let (Some(reserved), Some(holes)) = (failure.reserved(), failure.unallocated) else {
            return;
        };
        let (Some(tried), Some(free)) = (failure.tried, failure.free) else {
            return;
        };
        if reserved == Bytes::ZERO {
            return;
        }
        let share = holes.get() as f64 / reserved.get() as f64;
        if free + holes < tried {
            self.because(
                format!(
                    "Even perfectly packed, {free} free and {holes} unallocated could not serve {tried}: \
                     fragmentation alone is excluded."
                ),
                &[(Cause::Fragmentation, 0.05), (Cause::Outlier, 1.6)],
            );
        } else if share > ONE_SHAPE_LEAVES {
            self.because(
                format!(
                    "{holes} of {reserved} held are unallocated ({:.0} %), more than batches of one shape leave, and \
                     with {free} free they exceed the request of {tried}.",
                    100.0 * share
                ),
                &[(Cause::Fragmentation, 4.0)],
            );
        } else {
            self.because(
                format!(
                    "Only {holes} of {reserved} held are unallocated ({:.0} %): packing them better would gain little.",
                    100.0 * share
                ),
                &[(Cause::Fragmentation, 0.6)],
            );
        }
        if failure.expandable {
            self.because(
                "Expandable segments are on: whole free pages were given back before this failure.",
                &[(Cause::Fragmentation, 0.7)],
            );
        }
        if let Some(pools) = failure.private_pools.filter(|it| *it > Bytes::ZERO) {
            self.because(
                format!("CUDA graphs keep {pools} of what is held for themselves."),
                &[(Cause::Capacity, 1.1)],
            );
        }
    }
}
