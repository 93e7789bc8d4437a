//! The file of `unsloth train`.

use super::Imported;
use super::take::Take;
use super::tools;
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::{Scenario, Task};

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let marks = |section: &str, keys: &[&str]| {
        let section = document.get(section);
        section.is_some_and(|section| keys.iter().any(|key| section.get(key).is_some()))
    };
    marks("training", &["training_type", "max_seq_length"]) || marks("lora", &["lora_r"])
}

/// The default scenario with what the file says, and what the program always does.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    // What it does to adapters is its default; whole models are trained without.
    if take.text("training.training_type") != Some("full") {
        take.trainer("unsloth");
    }
    if let Some(name) = take.text("model") {
        let found = catalog::model_named(name).map(|entry| entry.id);
        take.model("model", name, found);
    }
    for (field, value) in [
        ("training.optimizer", "adamw-8bit"),
        ("training.precision", "amp-bf16-on-bf16"),
        ("training.kernels", "fused-norms"),
        ("training.loss", "liger"),
        ("training.clip", "on"),
    ] {
        take.set(field, value);
    }
    match take.text("training.optim").map(tools::optimizer) {
        Some(Some(known)) => take.set("training.optimizer", known),
        Some(None) => take.leave("training.optim"),
        None => {}
    }
    take.copy("training.batch_size", "data.micro_batch");
    take.copy(
        "training.gradient_accumulation_steps",
        "training.accumulation",
    );
    take.copy("training.max_seq_length", "data.sequence");
    take.copy("training.save_steps", "runtime.save_every");
    if take.switch("training.packing") == Some(false) {
        take.set("data.padding_mask", "on");
    }
    match take.value("training.gradient_checkpointing") {
        Some(Document::Text(value)) if value == "none" => {
            take.set("training.checkpointing", "none");
        }
        Some(Document::Text(value)) if value == "true" => {
            take.set("training.checkpointing", "layers");
        }
        Some(Document::Bool(_)) => take.checkpointing("training.gradient_checkpointing"),
        _ => take.leave("training.gradient_checkpointing"),
    }
    if take.text("training.training_type") == Some("full") {
        task(&mut take);
        return take.finish(WITHOUT_EFFECT);
    }
    take.lora();
    take.copy("lora.lora_r", "training.lora.rank");
    take.copy("lora.lora_dropout", "training.lora.dropout");
    take.copy("lora.target_modules", "training.lora.targets");
    // It is on unless the file says otherwise.
    let four = take.switch("training.load_in_4bit") != Some(false);
    take.set(
        "training.quantization",
        if four { "nf4-double" } else { "none" },
    );
    task(&mut take);
    take.finish(WITHOUT_EFFECT)
}

/// What a script trains for with one of TRL's trainers, which Unsloth patches; files of `unsloth train` name none.
fn task(take: &mut Take) {
    let Some(word) = take.text("task") else {
        return;
    };
    let rounds = ["steps_per_generation", "generation_batch_size"];
    let said = rounds.iter().any(|key| take.seen(key).is_some());
    let generations = match take.seen("num_generations") {
        Some(Document::Int(count)) => u64::try_from(*count).unwrap_or(1).max(1),
        _ => Task::default().generations,
    };
    let Scenario { data, training, .. } = &take.imported.scenario;
    let at_once = data.micro_batch.saturating_mul(training.accumulation);
    if word == "grpo" && !said && !at_once.is_multiple_of(generations) {
        // "We will change the batch size of .. to the `num_generations` of ..": it keeps a group together (unsloth/models/rl.py).
        take.set("data.micro_batch", &generations.to_string());
    }
    tools::patched(take, "task", word);
}

const WITHOUT_EFFECT: &[&str] = &[
    "data",
    "logging",
    "lora.lora_alpha",
    "training.learning_rate",
    "training.max_steps",
    "training.num_epochs",
    "training.output_dir",
    "training.random_seed",
    "training.warmup_steps",
    "training.weight_decay",
];
