//! Scenarios with a name: data over the settings, each value said so that no changed default changes it.

use super::everyday::EVERYDAY;
use super::{Scenario, settings, systems};

/// A named scenario.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name in commands and links.
    pub id: &'static str,
    pub title: &'static str,
    /// What the run is for, in a sentence.
    pub about: &'static str,
    /// Paths and values, as `--set` takes them.
    pub set: &'static [(&'static str, &'static str)],
}

/// All presets, in the order of the gallery.
pub fn all() -> &'static [Preset] {
    &ALL
}

/// The preset with this id.
pub fn find(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

impl Preset {
    /// The model that it names.
    pub fn model(&self) -> Option<&'static str> {
        let named = self.set.iter().find(|(path, _)| *path == "model.id");
        named.map(|(_, id)| *id)
    }

    pub fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::default();
        for (path, value) in self.set {
            // A test holds every preset to be made of known paths and values.
            let _ = settings::set(&mut scenario, path, value);
        }
        scenario
    }
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
    use crate::estimate::estimate;

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
            assert_eq!(estimate.fits, Some(true), "{}", preset.id);
        }
    }
}
