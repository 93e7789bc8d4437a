//! Files of training tools: transformers' `TrainingArguments`, TRL, Accelerate, Axolotl, LLaMA-Factory.
//!
//! Their keys overlap and do not contradict each other, so one table reads them all.

use super::Imported;
use crate::catalog;
use crate::document::Document;
use crate::scenario::{Precision, settings};

/// How a tool's value becomes a setting's text.
#[derive(Clone, Copy)]
enum Turn {
    Same,
    Model,
    Optimizer,
    Attention,
    /// `true` means checkpointing of every layer.
    Checkpointing,
    NotCheckpointing,
    /// Above zero means clipping.
    Clip,
    Lora,
    /// Read together with the others of its kind.
    Precision,
    /// Changes no tensor's size.
    Nothing,
}

/// A tool's key, the setting it says something about, and how.
const KEYS: &[(&str, &str, Turn)] = &[
    ("model_name_or_path", "model.id", Turn::Model),
    ("base_model", "model.id", Turn::Model),
    (
        "per_device_train_batch_size",
        "data.micro_batch",
        Turn::Same,
    ),
    ("micro_batch_size", "data.micro_batch", Turn::Same),
    (
        "gradient_accumulation_steps",
        "training.accumulation",
        Turn::Same,
    ),
    (
        "accumulate_grad_batches",
        "training.accumulation",
        Turn::Same,
    ),
    ("max_length", "data.sequence", Turn::Same),
    ("max_seq_length", "data.sequence", Turn::Same),
    ("max_seq_len", "data.sequence", Turn::Same),
    ("sequence_len", "data.sequence", Turn::Same),
    ("cutoff_len", "data.sequence", Turn::Same),
    ("num_processes", "hardware.gpus", Turn::Same),
    ("optim", "training.optimizer", Turn::Optimizer),
    ("optimizer", "training.optimizer", Turn::Optimizer),
    ("attn_implementation", "training.attention", Turn::Attention),
    ("flash_attn", "training.attention", Turn::Attention),
    (
        "gradient_checkpointing",
        "training.checkpointing",
        Turn::Checkpointing,
    ),
    (
        "activation_checkpointing",
        "training.checkpointing",
        Turn::Checkpointing,
    ),
    (
        "disable_gradient_checkpointing",
        "training.checkpointing",
        Turn::NotCheckpointing,
    ),
    ("max_grad_norm", "training.clip", Turn::Clip),
    ("gradient_clipping", "training.clip", Turn::Clip),
    ("use_peft", "training.lora", Turn::Lora),
    ("adapter", "training.lora", Turn::Lora),
    ("finetuning_type", "training.lora", Turn::Lora),
    ("lora_r", "training.lora.rank", Turn::Same),
    ("lora_rank", "training.lora.rank", Turn::Same),
    ("lora_dropout", "training.lora.dropout", Turn::Same),
    ("lora_target_modules", "training.lora.targets", Turn::Same),
    ("lora_target", "training.lora.targets", Turn::Same),
    ("bf16", "training.precision", Turn::Precision),
    ("fp16", "training.precision", Turn::Precision),
    ("bfloat16", "training.precision", Turn::Precision),
    ("float16", "training.precision", Turn::Precision),
    ("pure_bf16", "training.precision", Turn::Precision),
    ("dtype", "training.precision", Turn::Precision),
    ("torch_dtype", "training.precision", Turn::Precision),
    ("mixed_precision", "training.precision", Turn::Precision),
    ("learning_rate", "", Turn::Nothing),
    ("max_steps", "", Turn::Nothing),
    ("num_train_epochs", "", Turn::Nothing),
    ("num_epochs", "", Turn::Nothing),
    ("logging_steps", "", Turn::Nothing),
    ("lr_scheduler", "", Turn::Nothing),
    ("lr_scheduler_type", "", Turn::Nothing),
    ("warmup_steps", "", Turn::Nothing),
    ("warmup_ratio", "", Turn::Nothing),
    ("weight_decay", "", Turn::Nothing),
    ("output_dir", "", Turn::Nothing),
    ("report_to", "", Turn::Nothing),
    ("save_strategy", "", Turn::Nothing),
    ("save_steps", "", Turn::Nothing),
    ("seed", "", Turn::Nothing),
    ("lora_alpha", "", Turn::Nothing),
];

/// Whether the document is a file of one of these tools.
pub fn recognises(document: &Document) -> bool {
    let read =
        |(key, path, _): &&(&str, &str, Turn)| !path.is_empty() && document.get(key).is_some();
    KEYS.iter().filter(read).count() >= 2
}

/// The default scenario with what the file says; what it says besides is listed.
pub fn read(document: &Document) -> Imported {
    let mut imported = Imported::default();
    let Document::Map(entries) = document else {
        return imported;
    };
    // Adapters are asked for first, so that their settings find them.
    let is_switch = |key: &str| matches!(turn(key), Some((_, Turn::Lora)));
    let (switches, others): (Vec<_>, Vec<_>) = entries.iter().partition(|it| is_switch(&it.key));
    let has_rank = ["lora_r", "lora_rank"]
        .iter()
        .any(|key| document.get(key).is_some());
    let has_adapters =
        switches.iter().any(|it| adapters(&it.value)) || switches.is_empty() && has_rank;
    if has_adapters {
        imported.scenario.training.lora = Some(crate::scenario::Lora::default());
    }
    for entry in others {
        let taken = match turn(&entry.key) {
            None => false,
            Some((_, Turn::Nothing | Turn::Precision)) => true,
            Some((path, _)) if path.starts_with("training.lora") && !has_adapters => true,
            Some((path, turn)) => match text(turn, &entry.value) {
                Some(text) => match settings::set(&mut imported.scenario, path, &text) {
                    Ok(()) => true,
                    Err(problem) => {
                        imported.problems.push(problem);
                        true
                    }
                },
                None => entry.value == Document::Null,
            },
        };
        if !taken {
            imported.not_taken.push(entry.key.clone());
        }
    }
    let packing = document.get("packing") == Some(&Document::Bool(true));
    if packing && document.get("cutoff_len").is_some() {
        // LLaMA-Factory takes one token off where it packs.
        let sequence = &mut imported.scenario.data.sequence;
        *sequence = sequence.saturating_sub(1).max(1);
    }
    if let Some(precision) = precision(document, has_adapters) {
        imported.scenario.training.precision = precision;
    }
    imported
}

fn turn(key: &str) -> Option<(&'static str, Turn)> {
    KEYS.iter()
        .find(|(name, ..)| *name == key)
        .map(|(_, path, turn)| (*path, *turn))
}

fn adapters(value: &Document) -> bool {
    match value {
        Document::Bool(it) => *it,
        Document::Text(it) => matches!(it.as_str(), "lora" | "qlora"),
        _ => false,
    }
}

fn text(turn: Turn, value: &Document) -> Option<String> {
    match (turn, value) {
        (Turn::Same, Document::List(items)) => {
            let items: Option<Vec<String>> = items.iter().map(|it| text(Turn::Same, it)).collect();
            items.map(|items| items.join(","))
        }
        (Turn::Same, Document::Int(it)) => Some(it.to_string()),
        (Turn::Same, Document::Number(it)) => Some(it.to_string()),
        // Every linear layer: the default names those of a decoder only.
        (Turn::Same, Document::Text(it)) if !matches!(it.as_str(), "all" | "all-linear") => {
            Some(it.clone())
        }
        (Turn::Model, Document::Text(it)) => model(it),
        (Turn::Optimizer, Document::Text(it)) => optimizer(it).map(String::from),
        (Turn::Attention, Document::Text(it)) => match it.as_str() {
            "eager" | "disabled" => Some("eager".into()),
            "sdpa" | "auto" => Some("sdpa".into()),
            "flash_attention_2" | "fa2" => Some("flash_attention_2".into()),
            _ => None,
        },
        (Turn::Checkpointing, Document::Bool(it)) => {
            Some(if *it { "layers" } else { "none" }.into())
        }
        (Turn::NotCheckpointing, Document::Bool(it)) => {
            Some(if *it { "none" } else { "layers" }.into())
        }
        (Turn::Clip, Document::Int(it)) => Some(if *it > 0 { "on" } else { "off" }.into()),
        (Turn::Clip, Document::Number(it)) => Some(if *it > 0.0 { "on" } else { "off" }.into()),
        _ => None,
    }
}

/// The catalogue's id of a model that the hub knows by this name.
fn model(name: &str) -> Option<String> {
    let same = |it: &&catalog::ModelEntry| it.hf_id.eq_ignore_ascii_case(name);
    let found = catalog::models().iter().find(same);
    found
        .or_else(|| catalog::model(name))
        .map(|it| it.id.into())
}

fn optimizer(name: &str) -> Option<&'static str> {
    Some(match name {
        "adamw_torch" => "adamw",
        "adamw_torch_fused" => "adamw-fused",
        "sgd" => "sgd",
        "adafactor" => "adafactor-hf",
        "adagrad" => "adagrad",
        "rmsprop" => "rmsprop",
        _ => return None,
    })
}

/// Autocast or not, over weights of which format: said by several keys together.
fn precision(document: &Document, has_adapters: bool) -> Option<Precision> {
    let on = |key: &str| match document.get(key) {
        Some(Document::Bool(it)) => *it,
        Some(Document::Text(it)) => it == "auto" || it == "true",
        _ => false,
    };
    let word = |key: &str| match document.get(key) {
        Some(Document::Text(it)) => it.as_str(),
        _ => "",
    };
    let given = KEYS
        .iter()
        .any(|(key, _, turn)| matches!(turn, Turn::Precision) && document.get(key).is_some());
    let loads = |format: &str| [word("dtype"), word("torch_dtype")].contains(&format);
    let is_axolotl = document.get("base_model").is_some();
    let is_factory = document.get("finetuning_type").is_some();
    let bf16_weights = loads("bfloat16") || is_axolotl || (is_factory && has_adapters);
    let precision = if on("bfloat16") || on("pure_bf16") {
        Precision::Bf16
    } else if on("float16") {
        Precision::Fp16
    } else if on("bf16") || word("mixed_precision") == "bf16" {
        if bf16_weights {
            Precision::AmpBf16OnBf16
        } else {
            Precision::AmpBf16
        }
    } else if on("fp16") || word("mixed_precision") == "fp16" {
        Precision::AmpFp16
    } else if loads("bfloat16") {
        Precision::Bf16
    } else if loads("float16") {
        Precision::Fp16
    } else {
        Precision::Fp32
    };
    given.then_some(precision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::export::{TARGETS, json};
    use crate::scenario::Scenario;

    #[cfg(feature = "cli")]
    #[test]
    fn what_we_export_is_read_back_without_its_link() {
        let changes = [
            ("mb", "3"),
            ("seq", "768"),
            ("accum", "5"),
            ("ckpt", "layers"),
            ("clip", "on"),
            ("attn", "eager"),
            ("optim", "adamw-fused"),
            ("precision", "amp-bf16-on-bf16"),
            ("model", "llama-3.2-1b"),
            ("lora_rank", "24"),
            ("lora_targets", "q_proj,v_proj"),
            ("lora_dropout", "0.25"),
        ];
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        for target in TARGETS
            .iter()
            .filter(|it| matches!(it.id, "hf" | "trl" | "axolotl" | "llama-factory"))
        {
            let files = (target.write)(&scenario, &Estimate::default()).unwrap();
            let document = crate::import::yaml::read(&files[0].contents).unwrap();
            assert!(recognises(&document), "{}", target.id);
            let imported = read(&document);
            let expected = scenario.clone();
            assert_eq!(
                (imported.scenario, imported.problems),
                (expected, vec![]),
                "{}",
                target.id
            );
        }
    }

    #[test]
    fn what_does_not_map_is_listed() {
        #[track_caller]
        fn check(text: &str, changes: &[(&str, &str)], not_taken: &[&str]) {
            let document = crate::import::json::read(text).unwrap();
            let imported = read(&document);
            let mut expected = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut expected, name, value).unwrap();
            }
            let text = json::write(&document);
            assert_eq!(imported.scenario, expected, "{text}");
            assert_eq!(imported.not_taken, not_taken);
        }
        check(
            r#"{"base_model": "meta-llama/Llama-3.2-1B", "micro_batch_size": 2, "adapter": "qlora", "load_in_4bit": true,
                "bf16": "auto", "optimizer": "paged_adamw_8bit", "learning_rate": 0.1}"#,
            &[
                ("model", "llama-3.2-1b"),
                ("mb", "2"),
                ("lora", "on"),
                ("precision", "amp-bf16-on-bf16"),
            ],
            &["load_in_4bit", "optimizer"],
        );
        check(
            r#"{"per_device_train_batch_size": 4, "lora_r": 8, "use_peft": false, "fp16": true, "deepspeed": "x.json"}"#,
            &[("mb", "4"), ("precision", "amp-fp16")],
            &["deepspeed"],
        );
    }
}
