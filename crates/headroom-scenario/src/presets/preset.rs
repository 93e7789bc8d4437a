//! What a preset is.

use crate::{Scenario, settings};

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
