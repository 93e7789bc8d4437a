//! Errors other than a GPU that is too small: other frameworks, the host, implausible sizes, limits.

use super::Reading;
use crate::doctor::{Cause, Failure, Findings, Source};
use headroom_base::units::Bytes;

/// Sizes beyond any computer's memory.
const IMPOSSIBLE: u64 = 1 << 50;
/// No plausible batch needs this many GPUs.
const CARDS: u64 = 64;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let signs = &findings.signs;
    let numbered = failure.tried.is_some();
    if let Some(name) = signs.foreign.filter(|_| !numbered) {
        return Some(Reading::new(
            format!(
                "This is an error of {name}, not PyTorch, whose memory is all that Headroom predicts."
            ),
            &[
                (Cause::NotOutOfMemory, 0.94),
                (Cause::Unknown, 0.03),
                (Cause::Capacity, 0.02),
            ],
        ));
    }
    if signs.shared_memory && !numbered {
        return Some(Reading::new(
            "The shared memory through which data loader workers pass batches is full, not the GPU or the host.",
            &[(Cause::SharedMemory, 0.95), (Cause::HostMemory, 0.04)],
        ));
    }
    if (signs.host || failure.source == Source::Host) && !numbered {
        return Some(Reading::new(
            "The host ran out of memory, not the GPU: the text names the CPU's allocator or a killed process.",
            &[
                (Cause::HostMemory, 0.94),
                (Cause::SharedMemory, 0.03),
                (Cause::Unknown, 0.02),
            ],
        ));
    }
    impossible(failure)
        .or_else(|| limit(failure))
        .or_else(|| libraries(failure, findings))
        .or_else(|| despite_free_memory(failure))
}

/// Implausible requests.
fn impossible(failure: &Failure) -> Option<Reading> {
    let tried = failure.tried?;
    let beyond = failure
        .total
        .is_some_and(|total| total > Bytes::ZERO && tried.get() / total.get().max(1) >= CARDS);
    (tried.get() >= IMPOSSIBLE || beyond).then(|| {
        Reading::new(
            format!(
                "A request of {tried} is not a plausible tensor size: a shape or an index is wrong."
            ),
            &[
                (Cause::NotOutOfMemory, 0.85),
                (Cause::LibraryBug, 0.08),
                (Cause::Attention, 0.05),
            ],
        )
    })
}

/// A request that failed at a limit set by the program.
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
            &[(Cause::Capacity, 0.94), (Cause::Fragmentation, 0.03)],
        )
    })
}

/// Handles that could not be created, indices out of range, and totals that cannot be right.
fn libraries(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let bare = failure.tried.is_none();
    if findings.signs.library_memory && bare {
        return Some(Reading::new(
            "A library of CUDA had no memory for its handle or workspace, which it allocates outside PyTorch's allocator: \
             the GPU was full. If a smaller batch fails in the same way, run it on the CPU: a label or a token id may be \
             out of range.",
            &[
                (Cause::Capacity, 0.6),
                (Cause::NotOutOfMemory, 0.22),
                (Cause::OtherProcess, 0.1),
            ],
        ));
    }
    if findings.signs.index && bare {
        return Some(Reading::new(
            "The error comes from an index or from a kernel of cuBLAS: most often a label or a token id is out of range. On \
             the CPU, or with CUDA_LAUNCH_BLOCKING=1, the traceback shows the real line.",
            &[
                (Cause::NotOutOfMemory, 0.75),
                (Cause::Capacity, 0.12),
                (Cause::LibraryBug, 0.08),
            ],
        ));
    }
    let (free, total) = (failure.free?, failure.total?);
    (failure.source == Source::Allocator && free > total.scale(1.02)).then(|| {
        Reading::new(
            format!(
                "{free} is reported free on a GPU of {total}: the driver reports impossible sizes."
            ),
            &[
                (Cause::LibraryBug, 0.85),
                (Cause::Unknown, 0.08),
                (Cause::Capacity, 0.05),
            ],
        )
    })
}

/// A request that failed although the GPU had the memory.
fn despite_free_memory(failure: &Failure) -> Option<Reading> {
    let (tried, free) = (failure.tried?, failure.free?);
    // Printed numbers are rounded, and segments are larger than the request.
    let enough = tried.scale(1.01) + Bytes::mib(64);
    (failure.source == Source::Allocator && free > enough).then(|| {
        Reading::new(
            format!(
                "The GPU had {free} free for a request of {tried}, and the error names no limit: the driver failed for \
                 another reason, or another process has since freed memory."
            ),
            &[(Cause::Unknown, 0.65), (Cause::LibraryBug, 0.2), (Cause::OtherProcess, 0.15)],
        )
    })
}
