//! Scenarios with a name: data over the settings, each value said so that no changed default changes it.

mod everyday;
mod preset;
mod systems;

use everyday::EVERYDAY;
pub use preset::Preset;

/// All presets, in the order of the gallery.
pub fn all() -> &'static [Preset] {
    &ALL
}

/// The preset with this id.
pub fn find(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

/// The two lists as one.
static ALL: [Preset; PRESETS.len() + EVERYDAY.len()] = {
    let [first, ..] = PRESETS else {
        panic!("there are presets")
    };
    let mut all = [*first; PRESETS.len() + EVERYDAY.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < PRESETS.len() {
            PRESETS[at]
        } else {
            EVERYDAY[at - PRESETS.len()]
        };
        at += 1;
    }
    all
};

const PRESETS: &[Preset] = &[
    systems::DREAMS,
    systems::GSA,
    systems::PRS_MED,
    systems::RNA_3E_FFI,
    systems::PEPTRM,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, settings};
    use headroom_core::estimate::estimate;

    #[test]
    fn presets_are_valid_and_named_once() {
        for (at, preset) in all().iter().enumerate() {
            let twice = all()[..at].iter().any(|other| other.id == preset.id);
            assert!(!twice, "{} twice", preset.id);
            for (path, value) in preset.set {
                settings::set(&mut Scenario::default(), path, value).unwrap();
            }
            let scenario = preset.scenario();
            assert_eq!(scenario.check(), vec![], "{}", preset.id);
            let estimate = estimate(&scenario).unwrap();
            // Two guides tell of a run that ends: the largest pair, and what metrics keep until epoch 60.
            let ends = ["rna-3e-ffi", "dreams"].contains(&preset.id);
            assert_eq!(estimate.fits, Some(!ends), "{}", preset.id);
        }
    }
}
