//! Errors that are not a GPU too small for a run: other frameworks, the host, sizes that cannot be meant, limits.

use super::Reading;
use crate::doctor::{Cause, Failure, Findings, Source};
use headroom_base::units::Bytes;

/// Sizes beyond any computer's memory.
const IMPOSSIBLE: u64 = 1 << 50;
/// No batch that was meant to fit needs so many cards.
const CARDS: u64 = 64;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let signs = &findings.signs;
    let numbered = failure.tried.is_some();
    if let Some(name) = signs.foreign.filter(|_| !numbered) {
        return Some(Reading::new(
            format!(
                "This is an error of {name}, not of PyTorch: its memory is not what Headroom predicts."
            ),
            &[
                (Cause::NotOutOfMemory, 0.9),
                (Cause::Unknown, 0.06),
                (Cause::Capacity, 0.03),
            ],
        ));
    }
    if signs.shared_memory && !numbered {
        return Some(Reading::new(
            "Data loader workers pass batches through shared memory, and that is full: neither the GPU nor the host is.",
            &[(Cause::SharedMemory, 0.93), (Cause::HostMemory, 0.05)],
        ));
    }
    if (signs.host || failure.source == Source::Host) && !numbered {
        return Some(Reading::new(
            "The host ran out of memory, not the GPU: the text names the CPU's allocator or a killed process.",
            &[
                (Cause::HostMemory, 0.9),
                (Cause::SharedMemory, 0.05),
                (Cause::Unknown, 0.03),
            ],
        ));
    }
    impossible(failure)
        .or_else(|| limit(failure))
        .or_else(|| libraries(failure, findings))
        .or_else(|| granted(failure))
}

/// Requests that nobody can have meant.
fn impossible(failure: &Failure) -> Option<Reading> {
    let tried = failure.tried?;
    let beyond = failure
        .total
        .is_some_and(|total| total > Bytes::ZERO && tried.get() / total.get().max(1) >= CARDS);
    (tried.get() >= IMPOSSIBLE || beyond).then(|| {
        Reading::new(
            format!("A request of {tried} is no size of a batch: a shape or an index holds a wrong number."),
            &[(Cause::NotOutOfMemory, 0.75), (Cause::LibraryBug, 0.12), (Cause::Attention, 0.1)],
        )
    })
}

/// A request that failed at a limit the program set itself.
fn limit(failure: &Failure) -> Option<Reading> {
    let (tried, free, allowed) = (failure.tried?, failure.free?, failure.allowed?);
    let needed = failure.reserved().unwrap_or_default() + tried;
    // The printed numbers are rounded.
    (free >= tried && needed >= allowed.scale(0.98)).then(|| {
        Reading::new(
            format!(
                "The GPU had {free} free for a request of {tried}: it failed at the limit of {allowed} set by \
                 set_per_process_memory_fraction."
            ),
            &[(Cause::Capacity, 0.9), (Cause::Fragmentation, 0.05)],
        )
    })
}

/// Handles that could not be made, and totals that cannot be right.
fn libraries(failure: &Failure, findings: &Findings) -> Option<Reading> {
    if findings.signs.index && failure.tried.is_none() {
        return Some(Reading::new(
            "The error comes from an index or from setting up cuBLAS: most often a label or a token id is out of range, at \
             times the GPU was full. On the CPU, or with CUDA_LAUNCH_BLOCKING=1, the real line shows.",
            &[
                (Cause::NotOutOfMemory, 0.55),
                (Cause::Capacity, 0.25),
                (Cause::OtherProcess, 0.12),
            ],
        ));
    }
    let (free, total) = (failure.free?, failure.total?);
    (failure.source == Source::Allocator && free > total.scale(1.02)).then(|| {
        Reading::new(
            format!("{free} are said to be free on a GPU of {total}: the driver reports sizes that cannot be."),
            &[(Cause::LibraryBug, 0.75), (Cause::Unknown, 0.12), (Cause::Capacity, 0.1)],
        )
    })
}

/// A request that failed although the GPU had the memory.
fn granted(failure: &Failure) -> Option<Reading> {
    let (tried, free) = (failure.tried?, failure.free?);
    // Rounded numbers, and segments that are larger than what is asked for.
    let enough = tried.scale(1.01) + Bytes::mib(64);
    (failure.source == Source::Allocator && free > enough).then(|| {
        Reading::new(
            format!(
                "The GPU had {free} free for a request of {tried}, and no limit is named: the driver failed for another reason, \
                 or another process has since released memory."
            ),
            &[(Cause::Unknown, 0.55), (Cause::LibraryBug, 0.2), (Cause::OtherProcess, 0.15)],
        )
    })
}
