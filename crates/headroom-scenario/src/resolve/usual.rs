//! What people start with: the usual run of a model, for what nobody said.
//!
//! It is asked for by whoever names a model in a form or a sentence ([`Draft::bring_usual_run`](crate::Draft)); a link, a file or
//! a flag means what the format's defaults mean.

use super::{Origin, Values};
use crate::settings::{self, Value};
use crate::{Case, Checkpointing, Objective, Optimizer, Parallelism, Precision, Scenario};
use headroom_catalog::{ModelCategory, ModelEntry};

/// Below this a language model is trained whole on one card.
const WHOLE: u64 = 3_000_000_000;

/// Image models are adapted from smaller sizes on.
const WHOLE_IMAGES: u64 = 800_000_000;

const SOURCE: &str = "trl sft, axolotl, LLaMA-Factory, unsloth and diffusers: their examples";

/// What is said about adapters; `None` if nothing.
pub(super) type Said = Option<bool>;

/// Whether the usual run has adapters.
pub(super) fn has_adapters(scenario: &Scenario, said: Said) -> bool {
    said.unwrap_or_else(|| {
        let listed = Case::of(scenario).listed_model();
        scenario.hardware.gpus == 1 && listed.is_some_and(is_adapted)
    })
}

fn is_adapted(model: &ModelEntry) -> bool {
    match model.category {
        ModelCategory::Decoders | ModelCategory::VisionLanguage => model.parameters > WHOLE,
        ModelCategory::Diffusion => model.parameters > WHOLE_IMAGES,
        _ => false,
    }
}

/// The run of Ultralytics' trainer with its defaults (ultralytics/cfg/default.yaml, ultralytics/engine/trainer.py): on Linux the
/// convolutions have their channels last.
fn apply_ultralytics(values: &mut Values) {
    let origin = || Origin::Method {
        why: "the trainer's default",
        source: "ultralytics/cfg/default.yaml",
    };
    let switches = ["training.ema", "training.channels_last", "training.clip"];
    let named = [
        ("training.precision", Precision::AmpFp16.id()),
        ("training.optimizer", Optimizer::AdamWFused.id()),
    ];
    let switches = switches.map(|path| (path, Value::Switch(true)));
    let named = named.map(|(path, id)| (path, Value::Text(id.into())));
    let batch = [("data.micro_batch", Value::Whole(16))];
    for (path, value) in switches.into_iter().chain(named).chain(batch) {
        if let Some(setting) = settings::find(path) {
            values.insert(setting, (value, origin()));
        }
    }
}

/// The usual values of a model that is too large to be trained like GPT-2, or that one program trains.
pub(super) fn apply(scenario: &Scenario, said: Said, values: &mut Values) {
    let listed = Case::of(scenario).listed_model();
    if listed.is_some_and(|model| model.arch.starts_with("yolo") && model.arch != "yolos") {
        return apply_ultralytics(values);
    }
    let Some(model) = Case::of(scenario)
        .listed_model()
        .filter(|model| is_adapted(model))
    else {
        return;
    };
    let adapters = has_adapters(scenario, said);
    let mut set = |path: &str, value: Value, why: &'static str| {
        if let Some(setting) = settings::find(path) {
            let origin = Origin::Method {
                why,
                source: SOURCE,
            };
            values.insert(setting, (value, origin));
        }
    };
    if has_adapters(scenario, None) {
        let why = "usual for a model of this size on one GPU";
        set("training.lora", Value::Switch(true), why);
    }
    let why = "usual for a model of this size";
    let task = &scenario.training.task;
    // Completions are compared within a group, which is sampled at once.
    let batch = match task.objective {
        Objective::Grpo | Objective::Rloo => task.generations.max(1),
        _ => 1,
    };
    set("data.micro_batch", Value::Whole(batch), why);
    let layers = Value::Text(Checkpointing::Layers.id().into());
    set("training.checkpointing", layers, why);
    if model.category == ModelCategory::Diffusion {
        let attention = ["to_q", "to_k", "to_v"].map(String::from);
        let why = "diffusers' examples adapt the attention";
        set("training.lora.targets", Value::Words(attention.into()), why);
        if adapters && Case::of(scenario).has((8, 0), |gpu| gpu.bf16) {
            let base = Value::Text(Precision::AmpBf16OnBf16.id().into());
            let why = "diffusers' LoRA scripts load the frozen base in bf16";
            set("training.precision", base, why);
        }
    } else {
        let length = model.longest().map_or(2048, |longest| longest.min(2048));
        set("data.sequence", Value::Whole(length), why);
    }
    if scenario.hardware.gpus > 1 && !adapters {
        let shard = Value::Text(Parallelism::Fsdp2.id().into());
        set(
            "parallel.strategy",
            shard,
            "usual for a model of this size on several GPUs",
        );
    }
}
