//! Files of training tools that share transformers' keys: `TrainingArguments`, TRL, Accelerate, Axolotl,
//! LLaMA-Factory, ms-swift.
//!
//! Their keys overlap and do not contradict each other, so one reader serves them all.

mod factory;
mod keys;
mod layout;
mod parts;
mod task;
mod words;

use super::Imported;
use super::take::KeyReader;
use headroom_base::document::Document;
use headroom_reader::optimizers;
use headroom_scenario::Scenario;
pub(super) use parts::every_linear;
pub(super) use task::patched;

use keys::{ADAPTERS, COPIES, PRECISION, SWITCHES, WITHOUT_EFFECT};
use layout::layout;
use parts::{attention, checkpointing, four_bits, lengths, liger, loss_type, model};
use task::objective;
use words::precision;

/// Whether the document is a file of one of these tools.
pub fn recognises(document: &Document) -> bool {
    const MARKS: &[&str] = &[
        "model_name_or_path",
        "base_model",
        "optim",
        "optimizer",
        "attn_implementation",
        "attn_impl",
        "flash_attn",
        "gradient_checkpointing",
        "disable_gradient_checkpointing",
        "max_grad_norm",
        "distributed_type",
    ];
    let copies = COPIES.iter().chain(ADAPTERS).map(|(key, _)| key);
    let known = copies.chain(SWITCHES).chain(PRECISION).chain(MARKS);
    let known_keys = known.filter(|key| document.get(key).is_some()).count();
    // A short file may leave all else to its command.
    known_keys >= 2 || document.get("model_name_or_path").is_some() && names_data(document)
}

/// The default scenario, or the run if the file names no model, with the file's settings; unused keys are listed.
pub fn read(document: &Document, run: &Scenario) -> Imported {
    let mut reader = KeyReader::new(document);
    let names = |key: &&str| matches!(document.get(key), Some(Document::Text(_)));
    if !parts::MODEL.iter().any(names) {
        reader.part_of(run);
    }
    let mut switches: Vec<bool> = Vec::new();
    for key in SWITCHES {
        let Some(value) = reader.value(key) else {
            continue;
        };
        match adapters(value) {
            Some(on) => switches.push(on),
            None => reader.mark_unused(key),
        }
    }
    let ranked = ["lora_r", "lora_rank"]
        .iter()
        .any(|key| document.get(key).is_some());
    let has_adapters = switches.contains(&true) || (switches.is_empty() && ranked);
    if has_adapters {
        reader.lora();
    }
    if let Some(id) = trainer(document) {
        reader.trainer(id);
    }
    model(&mut reader);
    let swift = is_swift(document);
    if swift || document.get("trainer").is_some() {
        // ms-swift's default (its docs, Command-line-parameters.md).
        reader.set("data.micro_batch", "1");
    }
    for (key, field) in COPIES {
        reader.copy(key, field);
    }
    for (key, field) in ADAPTERS {
        match reader.value(key) {
            // Without adapters it has no effect.
            _ if !has_adapters => {}
            Some(Document::Text(value)) if value == "all" || value == "all-linear" => {
                every_linear(&mut reader, key);
            }
            Some(Document::Text(_) | Document::List(_)) if *field == "training.lora.targets" => {
                reader.targets(key, field);
            }
            _ => reader.copy(key, field),
        }
    }
    if has_adapters && (swift || document.get("finetuning_type").is_some()) {
        // The defaults of LLaMA-Factory and ms-swift.
        if !ranked {
            reader.set("training.lora.rank", "8");
        }
        let target = if swift {
            "target_modules"
        } else {
            "lora_target"
        };
        if document.get(target).is_none() {
            every_linear(&mut reader, target);
        }
    }
    if reader.switch("lora_target_linear") == Some(true) && has_adapters {
        every_linear(&mut reader, "lora_target_linear");
    }
    for key in ["optim", "optimizer"] {
        let named = reader
            .text(key)
            .map(|name| (optimizers::setting(name), name.ends_with("_layerwise")));
        match named {
            Some((Some(known), by_layer)) => {
                reader.set("training.optimizer", known);
                if by_layer {
                    reader.set("training.optimizer_in_backward", "on");
                }
            }
            Some((None, _)) => reader.mark_unused(key),
            None => {}
        }
    }
    attention(&mut reader);
    checkpointing(&mut reader, document);
    reader.clip("max_grad_norm");
    reader.clip("gradient_clipping");
    reader.clip("deepspeed_config.gradient_clipping");
    four_bits(&mut reader);
    loss_type(&mut reader);
    liger(&mut reader);
    lengths(&mut reader);
    layout(&mut reader);
    objective(&mut reader);
    if swift && document.get("gradient_accumulation_steps").is_none() {
        // Its default gives an effective batch of 16.
        let scenario = &reader.imported.scenario;
        let at_once =
            u64::from(scenario.hardware.gpus.max(1)).saturating_mul(scenario.data.micro_batch);
        let steps = 16_u64.div_ceil(at_once.max(1));
        reader.set("training.accumulation", &steps.to_string());
    }
    // Negative, or absent, keeps all.
    if !matches!(reader.value("save_total_limit"), Some(Document::Int(..=0))) {
        reader.copy("save_total_limit", "runtime.save_keep");
    }
    match reader.text("save_strategy") {
        // A fraction of all steps is not a number of steps.
        Some("steps") | None => match reader.value("save_steps") {
            Some(Document::Number(_)) | None => {}
            Some(_) => reader.copy("save_steps", "runtime.save_every"),
        },
        Some(_) => {
            reader.value("save_steps");
        }
    }
    for key in PRECISION {
        reader.value(key);
    }
    if let Some(precision) = precision(document, has_adapters) {
        reader.set("training.precision", precision.id());
    }
    if factory::recognises(document) {
        factory::plugins(&mut reader, document);
    }
    reader.finish(WITHOUT_EFFECT)
}

/// Whether it names data, by TRL's keys.
fn names_data(document: &Document) -> bool {
    let mut keys = [
        "dataset_name",
        "dataset_mixture",
        "dataset_mixer",
        "datasets",
    ]
    .iter();
    keys.any(|key| document.get(key).is_some())
}

/// The tool that a file is written for, by the keys that only it has; accelerate's own file leaves it open.
/// ms-swift's name of a method of training, by its present key or its old one, which other scripts have for their own.
fn is_swift(document: &Document) -> bool {
    const TUNERS: &[&str] = &[
        "lora",
        "full",
        "longlora",
        "adalora",
        "llamapro",
        "adapter",
        "vera",
        "boft",
        "fourierft",
        "reft",
        "bone",
    ];
    let old = document.get("train_type");
    let named = |word: &&str| old == Some(&Document::from(*word));
    document.get("tuner_type").is_some() || TUNERS.iter().any(named)
}

fn trainer(document: &Document) -> Option<&'static str> {
    let has = |key: &str| document.get(key).is_some();
    if document.get("trainer") == Some(&"megatron".into()) {
        Some("megatron")
    } else if has("base_model") {
        Some("axolotl")
    } else if has("finetuning_type") || has("cutoff_len") {
        Some("llama-factory")
    } else if is_swift(document) {
        Some("ms-swift")
    } else if has("use_peft") || (has("model_name_or_path") && names_data(document)) {
        Some("trl")
    } else {
        has("per_device_train_batch_size").then_some("transformers")
    }
}

/// Whether there are adapters; `None` for a kind that is not modelled.
fn adapters(value: &Document) -> Option<bool> {
    match value {
        Document::Bool(value) => Some(*value),
        Document::Text(value) => match value.as_str() {
            "lora" | "qlora" => Some(true),
            "full" | "" => Some(false),
            _ => None,
        },
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::targets;
    use headroom_base::document::json;
    use headroom_core::estimate::Estimate;
    use headroom_scenario::{Draft, resolve::resolve, settings};

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
        for target in targets().iter().filter(|target| {
            matches!(
                target.id,
                "hf" | "trl" | "axolotl" | "llama-factory" | "swift"
            )
        }) {
            let mut scenario = scenario.clone();
            scenario.data.padding_mask = target.id == "swift";
            let files = (target.write)(&scenario, &Estimate::default()).unwrap();
            let document = headroom_base::document::yaml::read(&files[0].contents).unwrap();
            assert!(recognises(&document), "{}", target.id);
            let imported = read(&document, &Scenario::default());
            // A file also tells which tool wrote it, and so its default loss.
            let mut expected = Scenario {
                stack: imported.scenario.stack.clone(),
                ..scenario.clone()
            };
            expected.training.loss = imported.scenario.training.loss;
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
        fn check(text: &str, changes: &[(&str, &str)], unused_keys: &[&str]) {
            let document = json::read(text).unwrap();
            let imported = read(&document, &Scenario::default());
            let mut expected = Draft::default();
            for (name, value) in changes {
                let setting = settings::named(name).unwrap();
                expected.change(setting, value).unwrap();
            }
            let expected = resolve(&expected).scenario;
            let text = json::write(&document);
            assert_eq!(imported.scenario, expected, "{text}");
            assert_eq!(imported.unused_keys, unused_keys);
        }
        check(
            r#"{"base_model": "meta-llama/Llama-3.2-1B", "micro_batch_size": 2, "adapter": "qlora", "load_in_4bit": true,
                "bf16": "auto", "optimizer": "paged_adamw_8bit", "learning_rate": 0.1}"#,
            &[
                ("lora", "on"),
                ("trainer", "axolotl"),
                ("model", "llama-3.2-1b"),
                ("mb", "2"),
                ("precision", "amp-bf16-on-bf16"),
                ("quant", "nf4-double"),
                ("optim", "adamw-paged-8bit"),
            ],
            &[],
        );
        check(
            r#"{"per_device_train_batch_size": 4, "lora_r": 8, "use_peft": false, "fp16": true, "deepspeed": "x.json",
                "optim": "adamw_torch_xla", "fsdp_config": {"odd": 1}}"#,
            &[("trainer", "trl"), ("mb", "4"), ("precision", "amp-fp16")],
            &["deepspeed", "optim", "fsdp_config.odd"],
        );
        // As the tools' own examples are.
        check(
            r#"{"model_name_or_path": "meta-llama/Meta-Llama-3-8B-Instruct", "trust_remote_code": true, "stage": "sft",
                "do_train": true, "finetuning_type": "lora", "template": "llama3", "cutoff_len": 2048, "max_samples": 1000,
                "preprocessing_num_workers": 16, "overwrite_output_dir": true, "per_device_train_batch_size": 1,
                "gradient_accumulation_steps": 8, "bf16": true, "ddp_timeout": 180000000, "flash_attn": "fa2"}"#,
            &[
                ("lora", "on"),
                ("trainer", "llama-factory"),
                ("model", "llama-3-8b"),
                ("mb", "1"),
                ("accum", "8"),
                ("seq", "2048"),
                ("lora_rank", "8"),
                (
                    "lora_targets",
                    "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
                ),
                ("attn", "flash_attention_2"),
                ("ckpt", "layers"),
                ("precision", "amp-bf16-on-bf16"),
            ],
            &[],
        );
        check(
            r#"{"base_model": "meta-llama/Llama-3.2-1B", "lora_target_modules": ".*[0-9]+.(q|v)_proj", "adapter": "lora", "sequence_len": 512, "sample_packing": true,
                "eval_sample_packing": true, "flash_attention": true, "tf32": false, "wandb_project": null}"#,
            &[
                ("lora", "on"),
                ("trainer", "axolotl"),
                ("model", "llama-3.2-1b"),
                ("lora_targets", "q_proj,v_proj"),
                ("seq", "512"),
                ("packing", "on"),
                ("attn", "flash_attention_2"),
            ],
            &[],
        );
    }

    #[test]
    fn a_model_that_is_not_known_is_asked_for() {
        let document = json::read(
            r#"{"base_model": "Qwen/Qwen4-8B", "micro_batch_size": 1, "adapter": "lora"}"#,
        )
        .unwrap();
        let question = read(&document, &Scenario::default())
            .question
            .unwrap()
            .to_string();
        assert!(
            question.starts_with("base_model is `Qwen/Qwen4-8B`; expected a model"),
            "{question}"
        );
        assert!(question.contains("qwen"), "{question}");
    }
}
