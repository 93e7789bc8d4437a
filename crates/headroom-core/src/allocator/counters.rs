//! What the allocator counts: the fields of `torch.cuda.memory_stats()` that matter here.

use serde::Serialize;

use headroom_base::units::Bytes;

/// A number of bytes now, and the most since the last `reset_peak_memory_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stat {
    /// The counter's `.current`.
    pub current: Bytes,
    /// The counter's `.peak`.
    pub peak: Bytes,
}

impl Stat {
    #[inline]
    pub(super) fn increase(&mut self, bytes: u64) {
        self.current += Bytes::new(bytes);
        self.peak = self.peak.max(self.current);
    }
    #[inline]
    pub(super) fn decrease(&mut self, bytes: u64) {
        self.current = self.current - Bytes::new(bytes);
    }
}

/// The counters, named as in `torch.cuda.memory_stats()` (pool `all`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Blocks handed out: `memory_allocated`.
    pub allocated: Stat,
    /// What the allocator holds from the driver: `memory_reserved`.
    pub reserved: Stat,
    /// Allocated, or freed and waiting for another stream.
    pub active: Stat,
    /// The requested size, before rounding.
    pub requested: Stat,
    /// Free pieces of segments that are partly in use. Expandable segments do not count here.
    pub inactive_split: Stat,
    /// `cudaMalloc`ed segments held. Expandable segments do not count here.
    pub segments: u64,
    /// Failed driver allocations that made the allocator give back its whole cache.
    pub retries: u64,
    /// Requests that failed even so.
    pub ooms: u64,
}

impl Counters {
    /// Counts an allocation that is freed at once; returns how much is allocated in between.
    #[inline]
    pub(super) fn malloc_and_free(&mut self, size: u64, requested: u64) -> u64 {
        for (stat, bytes) in [
            (&mut self.allocated, size),
            (&mut self.active, size),
            (&mut self.requested, requested),
        ] {
            stat.peak = stat.peak.max(stat.current + Bytes::new(bytes));
        }
        (self.allocated.current + Bytes::new(size)).get()
    }

    /// As `torch.cuda.reset_peak_memory_stats`.
    pub(super) fn reset_peaks(&mut self) {
        for stat in [
            &mut self.allocated,
            &mut self.reserved,
            &mut self.active,
            &mut self.requested,
            &mut self.inactive_split,
        ] {
            stat.peak = stat.current;
        }
    }
}
