//! What a preset is.

use crate::{Draft, Origin, Scenario, resolve::resolve, settings};

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

    /// A complete run: what it does not spell out is the format's default, also where its trainer has another.
    pub fn draft(&self) -> Draft {
        let origin = || Origin::Preset(self.id);
        let mut draft = Draft::default();
        let mut scenario = Scenario::default();
        for (path, value) in self.set {
            // A test holds every preset to be made of known paths and values.
            if let Some(setting) = settings::find(path) {
                draft.read(setting, value, origin());
                let _ = setting.set(&mut scenario, value);
            }
        }
        let resolved = resolve(&draft).scenario;
        for setting in settings::all() {
            let value = setting.value(&scenario);
            if setting.applies(&scenario) && value != setting.value(&resolved) {
                draft.set_value(setting, value, origin());
            }
        }
        draft
    }

    pub fn scenario(&self) -> Scenario {
        resolve(&self.draft()).scenario
    }
}
