//! The host's memory in pages that stay in place, as PyTorch's `CachingHostAllocator` gives it out.

/// The block that this many bytes are put into: a power of two (`PowerOf2Ceil`), kept when they are freed.
pub(crate) fn block(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    bytes.checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// Blocks of all these.
pub(crate) fn blocks(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.map(block).fold(0, u64::saturating_add)
}
