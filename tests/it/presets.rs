//! Every preset runs on its GPU.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_core::estimate::estimate;
use headroom_scenario::presets;

#[test]
fn presets_fit_their_gpus() {
    // Two guides tell of a run that ends: the largest pair, and what metrics keep until epoch 60.
    const ENDS: &[&str] = &["rna-3e-ffi", "dreams"];
    headroom_systems::install();
    for preset in presets::all() {
        let estimate = estimate(&preset.scenario()).unwrap();
        let fits = !ENDS.contains(&preset.id);
        assert_eq!(estimate.fits, Some(fits), "{}", preset.id);
    }
}
