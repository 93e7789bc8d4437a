//! Named scenarios: each sets every value it relies on, so that a changed default does not change it.

mod everyday;
mod preset;

use std::sync::OnceLock;

use everyday::EVERYDAY;
pub use preset::Preset;

/// All presets, those of a plug-in first.
pub fn all() -> &'static [Preset] {
    ALL.get().map_or(EVERYDAY, Vec::as_slice)
}

/// Adds the presets of a plug-in, once.
pub fn register(presets: &[Preset]) {
    ALL.get_or_init(|| [presets, EVERYDAY].concat());
}

/// Both lists, where a plug-in has registered its own.
static ALL: OnceLock<Vec<Preset>> = OnceLock::new();

/// The preset with this id.
pub fn find(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, settings};

    #[test]
    fn presets_are_valid_and_named_once() {
        for (at, preset) in EVERYDAY.iter().enumerate() {
            let twice = EVERYDAY[..at].iter().any(|other| other.id == preset.id);
            assert!(!twice, "{} twice", preset.id);
            for (path, value) in preset.set {
                settings::set(&mut Scenario::default(), path, value).unwrap();
            }
            let scenario = preset.scenario();
            assert_eq!(scenario.check(), vec![], "{}", preset.id);
            assert_eq!(scenario.warnings(), vec![], "{}", preset.id);
        }
    }
}
