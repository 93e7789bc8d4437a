//! The scenario's `PYTORCH_CUDA_ALLOC_CONF`.

use crate::allocator::{Divisions, Settings};
use headroom_base::units::Bytes;
use headroom_scenario::Runtime;

/// The settings of the caching allocator that the scenario asks for.
pub(super) fn settings(runtime: &Runtime) -> Settings {
    let above_zero = |value: f64| (value > 0.0).then_some(value);
    Settings {
        expandable_segments: runtime.expandable_segments,
        max_split_size: (runtime.max_split_size_mb > 0)
            .then(|| Bytes::mib(runtime.max_split_size_mb)),
        garbage_collection_threshold: above_zero(runtime.garbage_collection_threshold),
        memory_fraction: above_zero(runtime.memory_fraction).filter(|share| *share < 1.0),
        divisions: Divisions::all(runtime.roundup_power2_divisions),
        ..Settings::default()
    }
}
