//! Scenarios with a name: data over the settings, each value said so that no changed default changes it.

use super::{Scenario, settings};

/// A named scenario.
#[derive(Debug)]
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
    PRESETS
}

/// The preset with this id.
pub fn find(id: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.id == id)
}

impl Preset {
    pub fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::default();
        for (path, value) in self.set {
            // A test holds every preset to be made of known paths and values.
            let _ = settings::set(&mut scenario, path, value);
        }
        scenario
    }
}

const PRESETS: &[Preset] = &[Preset {
    id: "gpt2-small",
    title: "GPT-2 small, full fine-tuning",
    about: "All 124 million weights of GPT-2 on one 24 GB card, in bf16 autocast with AdamW.",
    set: &[
        ("hardware.gpu", "rtx-4090"),
        ("hardware.gpus", "1"),
        ("model.id", "gpt2"),
        ("data.micro_batch", "8"),
        ("data.sequence", "1024"),
        ("training.precision", "amp-bf16"),
        ("training.optimizer", "adamw"),
        ("training.attention", "sdpa"),
        ("training.checkpointing", "none"),
        ("training.accumulation", "1"),
    ],
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_named_once() {
        for (at, preset) in all().iter().enumerate() {
            let twice = all()[..at].iter().any(|other| other.id == preset.id);
            assert!(!twice, "{} twice", preset.id);
            for (path, value) in preset.set {
                settings::set(&mut Scenario::default(), path, value).unwrap();
            }
            assert_eq!(preset.scenario().check(), vec![], "{}", preset.id);
        }
    }
}
