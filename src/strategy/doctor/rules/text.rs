//! Rules on the numbers of the error itself.

use super::{NAMED, Verdict};
use crate::strategy::doctor::{Cause, Failure, Source};
use crate::units::Bytes;

/// The share of reserved memory that is unallocated when a run with batches of one shape fails, in recorded runs of the real
/// allocator. More than that comes from varying shapes.
const ONE_SHAPE_LEAVES: f64 = 0.15;

impl Verdict {
    /// Errors that did not come from the allocator.
    pub(super) fn source(&mut self, failure: &Failure) {
        match failure.source {
            Source::Host => self.because(
                "The host ran out of memory, not the GPU: the text names the CPU allocator or a killed process.",
                &[(Cause::Unknown, 1000.0)],
            ),
            Source::Driver if failure.allocated.is_none() => self.because(
                "The request failed in the driver, outside PyTorch's allocator, which would have printed numbers: the GPU \
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

    /// A request that failed although the GPU had the memory.
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
                        "The GPU had {free} free for a request of {tried}: it failed at the limit of {allowed} set by \
                         set_per_process_memory_fraction."
                    ),
                    &[(Cause::Capacity, 60.0), (Cause::Fragmentation, 0.3)],
                );
                self.may_say(NAMED);
            }
            _ => self.because(
                format!(
                    "The GPU had {free} free for a request of {tried}, and no limit is named: the driver failed for \
                     another reason, or another process has since released memory."
                ),
                &[
                    (Cause::Unknown, 20.0),
                    (Cause::OtherProcess, 4.0),
                    (Cause::Capacity, 0.3),
                ],
            ),
        }
    }

    /// Memory that is reserved but unallocated.
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
                    "{free} free and {holes} unallocated are less than the request of {tried}, even if contiguous: \
                     fragmentation alone is ruled out."
                ),
                &[(Cause::Fragmentation, 0.05), (Cause::Outlier, 1.6)],
            );
        } else if share > ONE_SHAPE_LEAVES {
            self.because(
                format!(
                    "{holes} of {reserved} reserved are unallocated ({:.0} %), more than batches of one shape leave, and \
                     with {free} free they exceed the request of {tried}.",
                    100.0 * share
                ),
                &[(Cause::Fragmentation, 4.0)],
            );
        } else {
            self.because(
                format!(
                    "Only {holes} of {reserved} reserved are unallocated ({:.0} %): fragmentation costs little.",
                    100.0 * share
                ),
                &[(Cause::Fragmentation, 0.6)],
            );
        }
        if failure.expandable {
            self.because(
                "Expandable segments are on: whole free pages were released before this failure.",
                &[(Cause::Fragmentation, 0.7)],
            );
        }
        if let Some(pools) = failure.private_pools.filter(|it| *it > Bytes::ZERO) {
            self.because(
                format!("CUDA graphs keep {pools} of the reserved memory in private pools."),
                &[(Cause::Capacity, 1.1)],
            );
        }
    }
}
