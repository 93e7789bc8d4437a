//! Files of training tools that share transformers' words: `TrainingArguments`, TRL, Accelerate, Axolotl,
//! LLaMA-Factory, ms-swift.
//!
//! Their keys overlap and do not contradict each other, so one reader serves them all.

mod keys;
mod words;

use super::take::Take;
use super::{Imported, deepspeed, hub};
use crate::catalog;
use crate::document::Document;
use crate::scenario::Parallelism;
use keys::{ADAPTERS, COPIES, PRECISION, SWITCHES, WITHOUT_EFFECT};
use words::{optimizer, precision};

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
    known.filter(|key| document.get(key).is_some()).count() >= 2
}

/// The default scenario with what the file says; what it says besides is listed.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    let mut switches: Vec<bool> = Vec::new();
    for key in SWITCHES {
        let value = take.value(key);
        switches.extend(value.map(adapters));
    }
    let ranked = ["lora_r", "lora_rank"]
        .iter()
        .any(|key| document.get(key).is_some());
    let has_adapters = switches.contains(&true) || (switches.is_empty() && ranked);
    if has_adapters {
        take.lora();
    }
    model(&mut take);
    for (key, field) in COPIES {
        take.copy(key, field);
    }
    for (key, field) in ADAPTERS {
        match take.value(key) {
            // Without adapters it says nothing.
            _ if !has_adapters => {}
            Some(Document::Text(it)) if it == "all" || it == "all-linear" => {
                every_linear(&mut take, key);
            }
            _ => take.copy(key, field),
        }
    }
    if has_adapters && document.get("finetuning_type").is_some() {
        // What LLaMA-Factory takes where nothing is said.
        if !ranked {
            take.set("training.lora.rank", "8");
        }
        if document.get("lora_target").is_none() {
            every_linear(&mut take, "lora_target");
        }
    }
    if take.switch("lora_target_linear") == Some(true) && has_adapters {
        every_linear(&mut take, "lora_target_linear");
    }
    for key in ["optim", "optimizer"] {
        match take.text(key).map(optimizer) {
            Some(Some(known)) => take.set("training.optimizer", known),
            Some(None) => take.leave(key),
            None => {}
        }
    }
    for key in ["attn_implementation", "attn_impl", "flash_attn"] {
        match take.text(key) {
            Some("eager" | "disabled") => take.set("training.attention", "eager"),
            Some("sdpa" | "auto") => take.set("training.attention", "sdpa"),
            Some("flash_attention_2" | "fa2" | "flash_attn") => {
                take.set("training.attention", "flash_attention_2");
            }
            Some(_) => take.leave(key),
            None => {}
        }
    }
    // Axolotl's former word.
    if take.switch("flash_attention") == Some(true) {
        take.set("training.attention", "flash_attention_2");
    }
    for key in [
        "gradient_checkpointing",
        "activation_checkpointing",
        "fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
    ] {
        // One of them on is enough: FSDP's own stands in for the trainer's.
        if take.switch(key) == Some(true) {
            take.checkpointing(key);
        } else if take
            .value(key)
            .is_some_and(|it| !matches!(it, Document::Bool(_)))
        {
            take.leave(key);
        }
    }
    // LLaMA-Factory and ms-swift checkpoint every layer unless they are told not to.
    let checkpoints = document.get("finetuning_type").is_some()
        || document.get("tuner_type").is_some() && document.get("gradient_checkpointing").is_none();
    let off = take.switch("disable_gradient_checkpointing");
    if off.is_some() || checkpoints {
        let layers = off != Some(true);
        let found = if layers { "layers" } else { "none" };
        take.set("training.checkpointing", found);
    }
    take.clip("max_grad_norm");
    take.clip("gradient_clipping");
    take.clip("deepspeed_config.gradient_clipping");
    four_bits(&mut take);
    liger(&mut take);
    lengths(&mut take);
    layout(&mut take);
    match take.text("save_strategy") {
        Some("steps") | None => take.copy("save_steps", "runtime.save_every"),
        Some(_) => {
            take.value("save_steps");
        }
    }
    for key in PRECISION {
        take.value(key);
    }
    if let Some(precision) = precision(document, has_adapters) {
        take.imported.scenario.training.precision = precision;
    }
    take.finish(WITHOUT_EFFECT)
}

fn adapters(value: &Document) -> bool {
    match value {
        Document::Bool(it) => *it,
        Document::Text(it) => matches!(it.as_str(), "lora" | "qlora"),
        _ => false,
    }
}

/// The catalogue's id of a model that the hub knows by this name.
fn model(take: &mut Take) {
    for key in ["model_name_or_path", "base_model", "model"] {
        let Some(name) = take.text(key) else { continue };
        match hub::model(name) {
            Some(entry) => take.set("model.id", entry.id),
            None => take.leave(key),
        }
    }
}

/// Adapters on every linear layer, where it is known how the model calls them.
fn every_linear(take: &mut Take, key: &str) {
    const KNOWN: &[&str] = &["llama", "mistral", "qwen2", "qwen3"];
    let model = catalog::model(&take.imported.scenario.model.id);
    if model.is_some_and(|it| KNOWN.contains(&it.arch)) {
        let targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";
        take.set("training.lora.targets", targets);
    } else {
        take.leave(key);
    }
}

fn four_bits(take: &mut Take) {
    let method = take
        .text("quantization_method")
        .or_else(|| take.text("quant_method"));
    let bits = take
        .value("quantization_bit")
        .or_else(|| take.value("quant_bits"));
    let loaded = take.switch("load_in_4bit") == Some(true);
    if !loaded && bits != Some(&Document::Int(4)) {
        return;
    }
    if method.is_some_and(|it| it != "bnb") {
        take.leave("quantization_method");
        return take.leave("quant_method");
    }
    let mut kind = "nf4";
    // Axolotl quantises scales unless it is told not to.
    if take.value("base_model").is_some() {
        kind = "nf4-double";
    }
    for key in [
        "bnb_4bit_use_double_quant",
        "use_bnb_nested_quant",
        "double_quantization",
        "bnb_config_kwargs.bnb_4bit_use_double_quant",
    ] {
        if let Some(double) = take.switch(key) {
            kind = if double { "nf4-double" } else { "nf4" };
        }
    }
    for key in ["bnb_4bit_quant_type", "quantization_type"] {
        if take.text(key).is_some_and(|it| it != "nf4") {
            take.leave(key);
        }
    }
    take.set("training.quantization", kind);
}

fn liger(take: &mut Take) {
    let whole = [
        "use_liger_kernel",
        "enable_liger_kernel",
        "liger_fused_linear_cross_entropy",
    ];
    let on = whole.map(|key| take.switch(key) == Some(true));
    if on.contains(&true) {
        take.set("training.loss", "liger-linear");
    }
    let parts = ["liger_rope", "liger_rms_norm", "liger_glu_activation"];
    let parts = parts.map(|key| take.switch(key) == Some(true));
    if on[0] || on[1] || parts == [true; 3] {
        take.set("training.kernels", "liger");
    }
    if on[2] {
        take.value("plugins");
    }
}

/// How texts fill the rows of a batch.
fn lengths(take: &mut Take) {
    let factory = take.value("cutoff_len").is_some();
    for key in ["packing", "join_texts"] {
        if let Some(full) = take.switch(key) {
            take.set("data.padding_mask", if full { "off" } else { "on" });
            if full && factory {
                // LLaMA-Factory takes one token off where it packs.
                let sequence = &mut take.imported.scenario.data.sequence;
                *sequence = sequence.saturating_sub(1).max(1);
            }
        }
    }
    if take
        .text("packing_strategy")
        .is_some_and(|it| it != "wrapped")
    {
        take.leave("packing_strategy");
    }
    // Axolotl's attention keeps packed samples apart without a mask; unpacked, it pads.
    if let Some(packed) = take.switch("sample_packing") {
        take.set("data.packing", if packed { "on" } else { "off" });
        if packed {
            take.set("data.padding_mask", "off");
        }
    }
    take.switch("pad_to_sequence_len");
}

/// How the GPUs share the work.
fn layout(take: &mut Take) {
    let kind = take.text("distributed_type");
    match kind {
        Some("NO") => take.set("hardware.gpus", "1"),
        Some("MULTI_GPU") => take.set("parallel.strategy", "ddp"),
        Some("FSDP" | "DEEPSPEED") | None => {}
        Some(_) => take.leave("distributed_type"),
    }
    let version = take
        .value("fsdp_config.fsdp_version")
        .or_else(|| take.value("fsdp_version"));
    let version = version.or_else(|| take.value("fsdp_config.version"));
    let fsdp = kind == Some("FSDP") || version.is_some() || take.switch("fsdp") == Some(true);
    if fsdp {
        let first = version == Some(&Document::Int(1));
        take.set("parallel.strategy", if first { "fsdp1" } else { "fsdp2" });
        for key in [
            "fsdp_config.fsdp_reshard_after_forward",
            "fsdp_config.reshard_after_forward",
        ] {
            take.copy(key, "parallel.reshard");
        }
        for key in [
            "fsdp_config.fsdp_offload_params",
            "fsdp_config.offload_params",
            "fsdp_config.cpu_offload",
        ] {
            if take.switch(key) == Some(true) {
                take.set("parallel.offload", "parameters");
            }
        }
    }
    if kind == Some("DEEPSPEED") && take.imported.scenario.parallel.strategy == Parallelism::Ddp {
        take.copy(
            "deepspeed_config.gradient_accumulation_steps",
            "training.accumulation",
        );
        deepspeed::zero(take, "deepspeed_config.zero_stage");
        deepspeed::offload(
            take,
            "deepspeed_config.offload_optimizer_device",
            "deepspeed_config.offload_param_device",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::export::{TARGETS, json};
    use crate::scenario::{Scenario, settings};

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
            .filter(|it| matches!(it.id, "hf" | "trl" | "axolotl" | "llama-factory" | "swift"))
        {
            let mut scenario = scenario.clone();
            scenario.data.padding_mask = target.id == "swift";
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
                ("quant", "nf4-double"),
                ("optim", "adamw-paged-8bit"),
            ],
            &[],
        );
        check(
            r#"{"per_device_train_batch_size": 4, "lora_r": 8, "use_peft": false, "fp16": true, "deepspeed": "x.json",
                "optim": "lomo", "fsdp_config": {"odd": 1}}"#,
            &[("mb", "4"), ("precision", "amp-fp16")],
            &["deepspeed", "optim", "fsdp_config.odd"],
        );
        // As the tools' own examples are.
        check(
            r#"{"model_name_or_path": "meta-llama/Meta-Llama-3-8B-Instruct", "trust_remote_code": true, "stage": "sft",
                "do_train": true, "finetuning_type": "lora", "template": "llama3", "cutoff_len": 2048, "max_samples": 1000,
                "preprocessing_num_workers": 16, "overwrite_output_dir": true, "per_device_train_batch_size": 1,
                "gradient_accumulation_steps": 8, "bf16": true, "ddp_timeout": 180000000, "flash_attn": "fa2"}"#,
            &[
                ("model", "llama-3-8b"),
                ("mb", "1"),
                ("accum", "8"),
                ("seq", "2048"),
                ("lora", "on"),
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
            r#"{"base_model": "my/model", "adapter": "lora", "sequence_len": 512, "sample_packing": true,
                "eval_sample_packing": true, "flash_attention": true, "tf32": false, "wandb_project": null}"#,
            &[
                ("seq", "512"),
                ("lora", "on"),
                ("packing", "on"),
                ("attn", "flash_attention_2"),
            ],
            &["base_model"],
        );
    }
}
