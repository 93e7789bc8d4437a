//! Sizes of blocks and segments (c10/cuda/CUDACachingAllocator.cpp).

/// All blocks are multiples of this (`kMinBlockSize`).
pub(super) const MIN_BLOCK: u64 = 512;
/// The largest request that the pool of small blocks serves (`kSmallSize`).
pub(super) const SMALL: u64 = 1 << 20;
/// The size of segments for small requests (`kSmallBuffer`).
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// From this size on a request gets a segment of its own size (`kMinLargeAlloc`).
pub(super) const MIN_LARGE_ALLOC: u64 = 10 << 20;
/// The size of such a segment is a multiple of this (`kRoundLarge`).
pub(super) const ROUND_LARGE: u64 = 2 << 20;
