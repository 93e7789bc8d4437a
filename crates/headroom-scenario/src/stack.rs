//! What the software that a scenario names does unasked: the defaults it brings, and which of them hold.

use super::settings::{self, Setting};
use super::{Scenario, Stack, Trainer, usual};
use headroom_catalog::{self as catalog, Fact};

/// A default that a stack brings to a setting.
#[derive(Clone, Copy, Debug)]
pub struct Brought {
    pub setting: &'static Setting,
    /// What the stack does unasked, as text that the setting reads.
    pub value: &'static str,
    /// The stack it comes from: the trainer, or a library below it.
    pub stack: &'static catalog::Stack,
    /// The version of that stack.
    pub version: (u8, u8),
    /// Where it was read, how sure it is, and a note.
    pub fact: &'static Fact,
    /// Whether the scenario has this value; else somebody chose another.
    pub holds: bool,
}

/// The defaults of the scenario's trainer and of the libraries below it, in the order of the settings. None for a loop
/// of one's own, which does what it was written to do.
pub fn brought(scenario: &Scenario) -> Vec<Brought> {
    let mut all: Vec<Brought> = Vec::new();
    if scenario.stack.trainer == Trainer::Torch {
        return all;
    }
    let layers = layers(&scenario.stack);
    for setting in settings::all() {
        if !setting.applies(scenario) {
            continue;
        }
        let first = layers.iter().find_map(|&(stack, version)| {
            let fact = stack.fact(setting.path, version)?;
            Some((stack, version, fact))
        });
        if let Some((stack, version, fact)) = first {
            let mut as_brought = scenario.clone();
            // A test holds every fact's value to be one that its setting reads.
            let _ = setting.set(&mut as_brought, fact.value);
            all.push(Brought {
                setting,
                value: fact.value,
                stack,
                version,
                fact,
                holds: setting.get(&as_brought) == setting.get(scenario),
            });
        }
    }
    all
}

/// What the software does unasked with a setting, where it has a default of its own.
pub(super) fn default(setting: &Setting, software: &Stack) -> Option<&'static str> {
    if software.trainer == Trainer::Torch {
        return None;
    }
    let mut layers = layers(software).into_iter();
    layers.find_map(|(stack, version)| stack.fact(setting.path, version).map(|fact| fact.value))
}

/// What the trainer does besides the settings, such as how it computes the loss (`logits`): the value of a behaviour
/// named at the head of `catalog/stacks.yaml`.
pub fn behaviour(scenario: &Scenario, key: &str) -> Option<&'static Fact> {
    layers(&scenario.stack)
        .iter()
        .find_map(|&(stack, version)| stack.fact(key, version))
}

/// The trainer and the libraries below it, the upper ones first, with the versions that the scenario names.
fn layers(stack: &Stack) -> Vec<(&'static catalog::Stack, (u8, u8))> {
    let Some(trainer) = catalog::stack(stack.trainer.id()) else {
        return Vec::new();
    };
    let named = |library: &catalog::Stack| match library.id {
        "torch" => stack.torch,
        "transformers" => stack.transformers,
        "peft" => stack.peft,
        id if id == trainer.id && stack.trainer_version != (0, 0) => stack.trainer_version,
        _ => library.last,
    };
    std::iter::once(trainer)
        .chain(trainer.on.iter().filter_map(|id| catalog::stack(id)))
        .map(|stack| (stack, named(stack)))
        .collect()
}

/// When a field is set among others: what brings defaults to others comes before them, the software first of all.
pub fn place(setting: &Setting) -> u8 {
    match setting.path {
        _ if setting.section() == "stack" => 0,
        "model.id" | "hardware.gpu" => 1,
        path if path.starts_with("training.lora") => 2,
        _ => 3,
    }
}

/// Sets a field as a form does: where it is one that brings defaults to others, fields that stand at their default before
/// take their default now, and fields that somebody changed stay.
pub fn choose(
    setting: &Setting,
    scenario: &mut Scenario,
    text: &str,
) -> Result<(), super::Problem> {
    let before = scenario.clone();
    setting.set(scenario, text)?;
    if place(setting) < 3 {
        let alone = scenario.clone();
        follow(scenario, &before);
        // What followed may bring or take away defaults itself, as adapters do.
        follow(scenario, &alone);
    }
    Ok(())
}

/// The defaults that the software and the method bring: paths and values.
fn values(scenario: &Scenario) -> Vec<(&'static str, &'static str)> {
    let of_software = brought(scenario);
    let of_method = usual(scenario).map(|brought| (brought.setting.path, brought.value));
    let of_software = of_software
        .iter()
        .map(|brought| (brought.setting.path, brought.value));
    of_software.chain(of_method).collect()
}

fn follow(scenario: &mut Scenario, before: &Scenario) {
    let defaults = Scenario::default();
    let left = values(before);
    // Adapters first: their fields mean nothing without them.
    for setting in settings::all() {
        let mut neutral = scenario.clone();
        if !setting.applies(scenario) {
            continue;
        }
        let value_of = |all: &[(&str, &'static str)]| {
            let found = all.iter().find(|(path, _)| *path == setting.path);
            found.map(|(_, value)| *value)
        };
        let (old, new) = (value_of(&left), value_of(&values(scenario)));
        if old == new {
            continue;
        }
        let default = setting.get(&defaults);
        let mut as_before = before.clone();
        let at_default = setting
            .set(&mut as_before, old.unwrap_or(&default))
            .is_ok_and(|()| setting.get(&as_before) == setting.get(scenario));
        if !at_default {
            continue;
        }
        let value = new.map_or(default, String::from);
        if setting.set(&mut neutral, &value).is_ok() {
            *scenario = neutral;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;
    use crate::sample::{self, Dice};
    use crate::share;
    use headroom_base::document::json;

    #[test]
    fn every_trainer_is_in_the_catalogue() {
        for trainer in Trainer::ALL {
            assert!(catalog::stack(trainer.id()).is_some(), "{}", trainer.id());
        }
    }

    #[test]
    fn a_scenario_takes_the_defaults_of_its_software_where_nothing_else_is_said() {
        #[track_caller]
        fn check(link: &str, expected: &[(&str, &str)]) {
            let opened = share::read(link);
            assert_eq!(opened.problems, vec![], "{link}");
            for (path, value) in expected {
                let setting = settings::find(path).unwrap();
                assert_eq!(setting.get(&opened.scenario), *value, "{link} {path}");
            }
        }
        check(
            "v=1&model=llama-3.2-1b&trainer=trl",
            &[
                ("training.checkpointing", "layers"),
                ("training.optimizer", "adamw-fused"),
                ("training.precision", "amp-bf16"),
                ("training.loss", "chunked-checkpoint"),
                ("training.clip", "on"),
            ],
        );
        check(
            "v=1&model=llama-3.2-1b&trainer=trl&trainer_version=0.16&transformers=4.50&ckpt_every=2",
            &[
                ("training.checkpointing", "none"),
                ("training.optimizer", "adamw"),
                ("training.precision", "fp32"),
                ("training.loss", "library"),
            ],
        );
        check(
            "v=1&model=llama-3.2-1b&trainer=trl&ckpt=none&lora_rank=4",
            &[
                ("training.checkpointing", "none"),
                ("training.lora.rank", "4"),
                ("training.lora.dropout", "0.05"),
                ("training.lora.fp32_adapters", "on"),
            ],
        );
        check(
            "v=1&trainer=transformers&lora=on&peft=0.11",
            &[("training.lora.fp32_adapters", "off")],
        );
        check(
            "v=1&trainer=unsloth",
            &[
                ("training.lora.rank", "64"),
                ("training.quantization", "nf4"),
            ],
        );
        check("v=1&torch=2.0", &[("training.checkpointing", "none")]);
        let file = r#"{"stack": {"trainer": "torchtune"}, "training": {"clip": true}}"#;
        let (scenario, problems) = document::read(&json::read(file).unwrap());
        assert_eq!(problems, vec![]);
        assert_eq!(scenario.training.precision.id(), "bf16");
        assert!(scenario.training.clip);
    }

    #[test]
    fn what_was_taken_is_listed_with_its_source() {
        let scenario = share::read("v=1&trainer=trl&ckpt=none&trainer_version=1.6").scenario;
        let all = brought(&scenario);
        let line = |brought: &Brought| {
            let (major, minor) = brought.version;
            let from = format!("{} {major}.{minor}", brought.stack.name);
            (brought.setting.path, brought.value, from, brought.holds)
        };
        let lines: Vec<_> = all.iter().map(line).collect();
        assert_eq!(
            lines[..3],
            [
                ("data.sequence", "1024", "TRL SFTTrainer 1.6".into(), true),
                (
                    "training.precision",
                    "amp-bf16",
                    "TRL SFTTrainer 1.6".into(),
                    true
                ),
                (
                    "training.optimizer",
                    "adamw-fused",
                    "transformers Trainer 5.23".into(),
                    true
                ),
            ]
        );
        let kept = all
            .iter()
            .find(|behaviour| behaviour.setting.path == "training.checkpointing");
        assert_eq!(kept.map(|behaviour| behaviour.holds), Some(false));
        assert!(
            all.iter()
                .all(|behaviour| behaviour.fact.sources().count() > 0)
        );
        assert_eq!(brought(&Scenario::default()).len(), 0);
        assert_eq!(
            behaviour(&scenario, "logits").map(|behaviour| behaviour.value),
            Some("upcast")
        );
    }

    #[test]
    fn a_link_keeps_its_meaning_when_defaults_of_the_software_change() {
        let mut dice = Dice::new(31);
        for _ in 0..200 {
            let mut scenario = sample::scenario(&mut dice);
            scenario.stack.trainer = Trainer::ALL[dice.below(12) as usize];
            let link = share::write(&scenario);
            assert_eq!(share::read(&link).scenario, scenario, "{link}");
            for default in brought(&scenario) {
                let key = format!("&{}=", default.setting.key);
                assert!(link.contains(&key), "{link} says no {key}");
            }
        }
    }

    #[test]
    fn adapters_on_a_language_model_load_its_base_in_bf16_unless_somebody_says_otherwise() {
        #[track_caller]
        fn check(changes: &str, precision: &str) {
            let mut scenario = Scenario::default();
            for change in changes.split(' ') {
                let (name, value) = change.split_once('=').unwrap();
                choose(settings::named(name).unwrap(), &mut scenario, value).unwrap();
            }
            assert_eq!(scenario.training.precision.id(), precision, "{changes}");
            // The link says it, so that it means the same in every version.
            let opened = share::read(&share::write(&scenario));
            assert_eq!((opened.scenario, opened.problems), (scenario, vec![]));
        }
        check("model=llama-3.1-8b lora=on", "amp-bf16-on-bf16");
        check("lora_rank=8 model=llama-3.1-8b", "amp-bf16-on-bf16");
        check("model=llama-3.1-8b lora=on lora=off", "amp-bf16");
        check("lora=on precision=fp32 lora_rank=4", "fp32");
        check("precision=fp16 lora=on", "fp16");
        check("model=bert-base-uncased lora=on", "amp-bf16");
        check("lora=on model=bert-base-uncased", "amp-bf16");
        check("gpu=t4 lora=on", "amp-bf16");
        // A trainer that is named has a default of its own.
        check("model=llama-3.1-8b trainer=trl lora=on", "amp-bf16");
        check("model=llama-3.1-8b lora=on trainer=torchtune", "bf16");
        // What links meant before stays.
        let old = share::read("v=1&data=1&model=llama-3.1-8b&lora=on").scenario;
        assert_eq!(old.training.precision.id(), "amp-bf16");
    }

    #[test]
    fn fields_that_nobody_changed_follow_the_software() {
        let choose = |scenario: &mut Scenario, path: &str, value: &str| {
            super::choose(settings::find(path).unwrap(), scenario, value).unwrap();
        };
        let mut scenario = Scenario::default();
        choose(&mut scenario, "training.clip", "off");
        choose(&mut scenario, "data.sequence", "4096");
        choose(&mut scenario, "stack.trainer", "trl");
        assert_eq!(scenario.training.checkpointing.id(), "layers");
        assert_eq!(scenario.data.sequence, 4096);
        choose(&mut scenario, "stack.trainer_version", "0.20");
        assert_eq!(scenario.training.checkpointing.id(), "none");
        choose(&mut scenario, "training.checkpointing", "offload");
        choose(&mut scenario, "stack.trainer", "unsloth");
        assert_eq!(scenario.training.checkpointing.id(), "offload");
        assert_eq!(
            scenario.training.lora.as_ref().map(|lora| lora.rank),
            Some(64)
        );
        choose(&mut scenario, "training.checkpointing", "layers");
        choose(&mut scenario, "stack.trainer", "torch");
        let mut expected = Scenario::default();
        expected.data.sequence = 4096;
        expected.stack.trainer_version = (0, 20);
        assert_eq!(scenario, expected);
    }
}
