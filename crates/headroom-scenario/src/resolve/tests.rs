use super::*;
use crate::sample;
use crate::share;
use crate::{Trainer, document, presets};
use headroom_base::document::json;
use headroom_catalog as catalog;
use headroom_testing::Dice;

#[test]
fn the_draft_of_a_scenario_resolves_to_it() {
    let mut dice = Dice::new(7);
    for _ in 0..1000 {
        let mut scenario = sample::scenario(&mut dice);
        scenario.stack.trainer = Trainer::ALL[dice.below(12) as usize];
        let scenario = share::read(&share::write(&scenario)).scenario;
        assert_eq!(resolve(&Draft::of(&scenario)).scenario, scenario);
        let before = share::read(&share::write(&sample::scenario(&mut dice))).draft;
        let moved = before.moved_to(&scenario);
        assert_eq!(resolve(&moved).scenario, scenario);
    }
}

#[test]
fn the_order_in_which_a_draft_is_filled_does_not_matter() {
    let mut dice = Dice::new(9);
    for _ in 0..300 {
        let link = share::write(&sample::scenario(&mut dice));
        let mut pairs: Vec<&str> = link.split('&').collect();
        let before = share::read(&pairs.join("&"));
        pairs.reverse();
        assert_eq!(share::read(&pairs.join("&")), before);
        let forth = "trainer=trl lora_rank=4 ckpt=none model=llama-3.1-8b";
        let back = "model=llama-3.1-8b ckpt=none lora_rank=4 trainer=trl";
        let [forth, back] = [forth, back].map(|changes| changed(before.draft.clone(), changes));
        assert_eq!(resolve(&forth).scenario, resolve(&back).scenario);
    }
}

#[test]
fn every_trainer_is_in_the_catalogue() {
    for trainer in Trainer::ALL {
        assert!(catalog::stack(trainer.id()).is_some(), "{}", trainer.id());
    }
}

#[test]
fn a_scenario_has_the_defaults_of_its_software() {
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
fn defaults_of_the_software_are_listed_with_their_sources() {
    let scenario = share::read("v=1&trainer=trl&ckpt=none&trainer_version=1.6").scenario;
    let all = stack_defaults(&scenario);
    let line = |default: &StackDefault| {
        let (value, library) = (default.value.to_string(), default.library.to_string());
        format!(
            "{}={value} {library} {}",
            default.setting, default.in_effect
        )
    };
    let lines: Vec<_> = all.iter().map(line).collect();
    assert_eq!(
        lines[..3],
        [
            "data.sequence=1024 TRL SFTTrainer 1.6 true",
            "training.precision=amp-bf16 TRL SFTTrainer 1.6 true",
            "training.optimizer=adamw-fused transformers Trainer 5.23 true",
        ]
    );
    assert!(lines.contains(&"training.checkpointing=layers TRL SFTTrainer 1.6 false".to_string()));
    assert!(all.iter().all(|default| default.fact.sources().count() > 0));
    assert_eq!(stack_defaults(&Scenario::default()).len(), 0);
}

#[test]
fn a_link_keeps_its_meaning_when_defaults_of_the_software_change() {
    let mut dice = Dice::new(31);
    for _ in 0..200 {
        let mut scenario = sample::scenario(&mut dice);
        scenario.stack.trainer = Trainer::ALL[dice.below(12) as usize];
        let link = share::write(&scenario);
        assert_eq!(share::read(&link).scenario, scenario, "{link}");
        for default in stack_defaults(&scenario) {
            let key = format!("&{}=", default.setting.key);
            assert!(link.contains(&key), "{link} has no {key}");
        }
    }
}

/// The draft after these changes, as a form or `--set` makes them.
fn changed(mut draft: Draft, changes: &str) -> Draft {
    for change in changes.split(' ').filter(|change| !change.is_empty()) {
        let (name, value) = change.split_once('=').unwrap();
        let setting = settings::named(name).unwrap();
        draft.change(setting, value).unwrap();
    }
    draft
}

#[test]
fn lora_on_a_language_model_has_a_bf16_base_by_default() {
    #[track_caller]
    fn check(changes: &str, precision: &str) {
        let scenario = resolve(&changed(Draft::default(), changes)).scenario;
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
    let old = share::read("v=1&data=1&model=llama-3.1-8b&lora=on");
    assert_eq!(old.scenario.training.precision.id(), "amp-bf16");
    let later = resolve(&changed(old.draft, "lora_rank=4")).scenario;
    assert_eq!(later.training.precision.id(), "amp-bf16");
}

#[test]
fn what_a_person_said_stays_and_the_rest_follows_the_software() {
    let mut draft = changed(Draft::default(), "clip=off seq=4096 trainer=trl");
    let scenario = resolve(&draft).scenario;
    assert_eq!(scenario.training.checkpointing.id(), "layers");
    assert_eq!(scenario.data.sequence, 4096);
    assert!(!scenario.training.clip);
    draft = changed(draft, "trainer_version=0.20");
    assert_eq!(resolve(&draft).scenario.training.checkpointing.id(), "none");
    draft = changed(draft, "ckpt=offload trainer=unsloth");
    let scenario = resolve(&draft).scenario;
    assert_eq!(scenario.training.checkpointing.id(), "offload");
    assert_eq!(scenario.training.lora.map(|lora| lora.rank), Some(64));
    let mut expected = Scenario::default();
    expected.data.sequence = 4096;
    expected.stack.trainer_version = Some((0, 20));
    assert_eq!(
        resolve(&changed(draft, "ckpt=none trainer=torch")).scenario,
        expected
    );
}

#[test]
fn defaults_that_a_link_spells_out_follow_the_software() {
    let opened = share::read(&share::write(&share::read("v=1&trainer=trl&mb=4").scenario));
    let scenario = resolve(&changed(opened.draft, "trainer=torch")).scenario;
    assert_eq!(share::write(&scenario), "v=1&data=1&mb=4");
}

#[test]
fn every_value_has_its_origin() {
    #[track_caller]
    fn check(draft: &Draft, expected: &[(&str, &str)]) {
        let origins = resolve(draft).origins;
        for (path, origin) in expected {
            let found = &origins[settings::find(path).unwrap()];
            assert_eq!(found.to_string(), *origin, "{path}");
        }
    }
    let preset = presets::find("gpt2-small").unwrap().draft();
    check(
        &changed(preset, "mb=4"),
        &[
            ("data.micro_batch", "given"),
            ("training.optimizer", "preset gpt2-small"),
            ("training.clip", "default"),
        ],
    );
    check(
        &share::read("v=1&trainer=trl&lora_rank=4&optim=adamw-fused").draft,
        &[
            ("training.lora", "link"),
            ("training.lora.targets", "default"),
            ("training.checkpointing", "default of TRL SFTTrainer 1.16"),
            ("training.optimizer", "default of transformers Trainer 5.23"),
        ],
    );
    check(
        &changed(Draft::default(), "model=bert-base-uncased"),
        &[("data.sequence", "catalogue entry of bert-base-uncased")],
    );
}

#[test]
fn a_value_without_effect_is_a_conflict_unless_a_stronger_source_overrules_it() {
    let problems = |draft: &Draft| {
        let problems = resolve(draft).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let said = changed(Draft::default(), "lora=off lora_rank=4 generations=2");
    assert_eq!(
        problems(&said),
        [
            "task.generations is `2`; expected no value while task.objective is pretraining",
            "training.lora.rank is `4`; expected no value while training.lora is off",
        ]
    );
    let without_pictures = changed(Draft::default(), "model=gpt2 image_height=448");
    assert_eq!(
        problems(&without_pictures),
        ["data.image_height is `448`; expected no value while model.id is gpt2"]
    );
    let file = json::read(r#"{"training": {"lora": {"rank": 4}}}"#).unwrap();
    let (draft, _) = document::draft(&file);
    let off = changed(draft, "lora=off");
    assert_eq!(
        (problems(&off), resolve(&off).scenario.training.lora),
        (vec![], None)
    );
    let on = changed(share::read("lora=off").draft, "lora_rank=4");
    assert_eq!(resolve(&on).scenario.training.lora.unwrap().rank, 4);
}

#[test]
fn assumptions_are_said_in_one_line_by_source() {
    #[track_caller]
    fn check(changes: &str, expected: &str) {
        let resolved = resolve(&changed(Draft::default(), changes));
        assert_eq!(in_words(&resolved).as_deref(), Some(expected));
    }
    check(
        "model=Qwen/Qwen2.5-7B",
        "GeForce RTX 4090 as the GPU, batch 8 × 1024 tokens, bf16 autocast over fp32 weights, AdamW, no checkpointing (defaults)",
    );
    check(
        "model=Qwen/Qwen2.5-7B mb=2 optim=sgd",
        "GeForce RTX 4090 as the GPU, 1024 tokens, bf16 autocast over fp32 weights, no checkpointing (defaults)",
    );
    check(
        "model=wan2.1-t2v-1.3b mb=1 gpu=l40s-48gb",
        "480 × 832 pixels, 81 frames, bf16 autocast over fp32 weights, AdamW, no checkpointing (defaults)",
    );
    check(
        "model=qwen3-vl-4b mb=1 gpu=l40s-48gb seq=512 image_height=448 image_width=672",
        "1 picture a sample, 448 × 672 pixels, bf16 autocast over fp32 weights, AdamW, no checkpointing (defaults)",
    );
    let resolved = resolve(&changed(
        Draft::default(),
        "trainer=trl lora_rank=4 mb=1 seq=64 gpus=2",
    ));
    let said = in_words(&resolved).unwrap();
    assert!(
        !said.contains("par=") && !said.contains("lora_targets="),
        "{said}"
    );
    check(
        "model=resnet-50 mb=2 optim=sgd ckpt=none",
        "GeForce RTX 4090 as the GPU, bf16 autocast over fp32 weights (defaults)",
    );
}

#[test]
fn a_model_that_is_named_brings_its_usual_run() {
    #[track_caller]
    fn check(changes: &str, expected: &[(&str, &str)]) {
        let mut draft = Draft::default();
        draft.bring_usual_run();
        let draft = changed(draft, changes);
        let scenario = resolve(&draft).scenario;
        for (path, value) in expected {
            let setting = settings::find(path).unwrap();
            assert_eq!(setting.get(&scenario), *value, "{changes}: {path}");
        }
        // What is applied to it keeps its meaning.
        let mut other = scenario.clone();
        other.data.micro_batch += 1;
        assert_eq!(
            resolve(&draft.moved_to(&other)).scenario,
            other,
            "{changes}"
        );
        assert_eq!(
            resolve(&draft.moved_to(&scenario)).scenario,
            scenario,
            "{changes}"
        );
    }
    let adapted = [
        ("training.lora", "on"),
        ("data.micro_batch", "1"),
        ("data.sequence", "2048"),
        ("training.precision", "amp-bf16-on-bf16"),
        ("training.checkpointing", "layers"),
    ];
    // One group of completions.
    check(
        "model=qwen2.5-7b task=grpo lora=on",
        &[("data.micro_batch", "8")],
    );
    check("model=llama-3.1-8b", &adapted);
    check(
        "model=llama-3.1-8b seq=4096 lora_rank=64",
        &[("data.sequence", "4096"), ("training.lora.rank", "64")],
    );
    let full = [("training.lora", "off"), ("training.precision", "amp-bf16")];
    check("model=llama-3.1-8b lora=off", &full);
    check(
        "model=llama-3.1-70b gpus=8",
        &[("training.lora", "off"), ("parallel.strategy", "fsdp2")],
    );
    check(
        "model=sdxl-unet",
        &[
            ("training.lora", "on"),
            ("training.lora.targets", "to_q,to_k,to_v"),
        ],
    );
    // What one program trains starts with its defaults.
    check(
        "model=yolo11n",
        &[
            ("data.micro_batch", "16"),
            ("training.precision", "amp-fp16"),
            ("training.ema", "on"),
        ],
    );
    // What is small starts as it always did.
    let small = [("training.lora", "off"), ("data.micro_batch", "8")];
    check("model=gpt2", &small);
    check("model=whisper-small", &[("data.sequence", "448")]);
}
