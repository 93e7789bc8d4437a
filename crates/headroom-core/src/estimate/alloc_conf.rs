//! The scenario's `PYTORCH_CUDA_ALLOC_CONF`.

use std::num::NonZero;

use crate::allocator::{Divisions, Settings};
use headroom_base::units::Bytes;
use headroom_scenario::Runtime;

/// The scenario's settings of the caching allocator.
pub(super) fn settings(runtime: &Runtime) -> Settings {
    Settings {
        expandable_segments: runtime.expandable_segments,
        max_split_size: runtime.max_split_size_mb.map(|mib| Bytes::mib(mib.get())),
        garbage_collection_threshold: runtime.garbage_collection_threshold,
        memory_fraction: runtime.memory_fraction.filter(|share| *share > 0.0),
        divisions: Divisions::all(runtime.roundup_power2_divisions.map_or(0, NonZero::get)),
        ..Settings::default()
    }
}
