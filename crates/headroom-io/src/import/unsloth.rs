//! The file of `unsloth train`.

use super::Imported;
use super::take::KeyReader;
use super::tools;
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_reader::optimizers;
use headroom_scenario::{Scenario, Task};

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let marks = |section: &str, keys: &[&str]| {
        let section = document.get(section);
        section.is_some_and(|section| keys.iter().any(|key| section.get(key).is_some()))
    };
    marks("training", &["training_type", "max_seq_length"]) || marks("lora", &["lora_r"])
}

/// The default scenario with the file's settings and what the program always does.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    // Its patches apply to adapters; full fine-tuning runs without them.
    if reader.text("training.training_type") != Some("full") {
        reader.trainer("unsloth");
    }
    if let Some(name) = reader.text("model") {
        let found = catalog::model_named(name).map(|entry| entry.id);
        reader.model("model", name, found);
    }
    for (field, value) in [
        ("training.optimizer", "adamw-8bit"),
        ("training.precision", "amp-bf16-on-bf16"),
        ("training.kernels", "fused-norms"),
        ("training.loss", "liger"),
        ("training.clip", "on"),
    ] {
        reader.set(field, value);
    }
    match reader.text("training.optim").map(optimizers::setting) {
        Some(Some(known)) => reader.set("training.optimizer", known),
        Some(None) => reader.mark_unused("training.optim"),
        None => {}
    }
    reader.copy("training.batch_size", "data.micro_batch");
    reader.copy(
        "training.gradient_accumulation_steps",
        "training.accumulation",
    );
    reader.copy("training.max_seq_length", "data.sequence");
    reader.copy("training.save_steps", "runtime.save_every");
    if reader.switch("training.packing") == Some(false) {
        reader.set("data.padding_mask", "on");
    }
    match reader.value("training.gradient_checkpointing") {
        Some(Document::Text(value)) if value == "none" => {
            reader.set("training.checkpointing", "none");
        }
        Some(Document::Text(value)) if value == "true" => {
            reader.set("training.checkpointing", "layers");
        }
        Some(Document::Bool(_)) => reader.checkpointing("training.gradient_checkpointing"),
        _ => reader.mark_unused("training.gradient_checkpointing"),
    }
    if reader.text("training.training_type") == Some("full") {
        task(&mut reader);
        return reader.finish(WITHOUT_EFFECT);
    }
    reader.lora();
    reader.copy("lora.lora_r", "training.lora.rank");
    reader.copy("lora.lora_dropout", "training.lora.dropout");
    reader.copy("lora.target_modules", "training.lora.targets");
    // On by default.
    let four = reader.switch("training.load_in_4bit") != Some(false);
    reader.set(
        "training.quantization",
        if four { "nf4-double" } else { "none" },
    );
    task(&mut reader);
    reader.finish(WITHOUT_EFFECT)
}

/// The task of a script with one of TRL's trainers, which Unsloth patches; files of `unsloth train` have none.
fn task(reader: &mut KeyReader) {
    let Some(word) = reader.text("task") else {
        return;
    };
    let rounds = ["steps_per_generation", "generation_batch_size"];
    let is_set = rounds.iter().any(|key| reader.peek(key).is_some());
    let generations = match reader.peek("num_generations") {
        Some(Document::Int(count)) => u64::try_from(*count).unwrap_or(1).max(1),
        _ => Task::default().generations,
    };
    let Scenario { data, training, .. } = &reader.imported.scenario;
    let at_once = data.micro_batch.saturating_mul(training.accumulation);
    if word == "grpo" && !is_set && !at_once.is_multiple_of(generations) {
        // "We will change the batch size of .. to the `num_generations` of ..": it keeps a group together (unsloth/models/rl.py).
        reader.set("data.micro_batch", &generations.to_string());
    }
    tools::patched(reader, "task", word);
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
