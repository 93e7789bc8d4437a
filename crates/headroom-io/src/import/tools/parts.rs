//! Settings that depend on several keys of a file.

use super::super::take::KeyReader;
use headroom_base::document::Document;
use headroom_catalog::{self as catalog, ModelCategory, ModelEntry};
use headroom_core::estimate;
use headroom_scenario::Case;

/// Where a file names its model.
pub const MODEL: &[&str] = &["model_name_or_path", "base_model", "model"];

/// The catalogue's id of a model that the hub knows by this name.
pub fn model(reader: &mut KeyReader) {
    for key in MODEL {
        let Some(name) = reader.text(key) else {
            continue;
        };
        let found = catalog::model_named(name).map(|entry| entry.id);
        reader.model(key, name, found);
    }
}

/// Adapters on every linear layer, if the model's names for them are known.
pub fn every_linear(reader: &mut KeyReader, key: &str) {
    const KNOWN: &[&str] = &["llama", "mistral", "qwen2", "qwen3"];
    let case = Case::of(&reader.imported.scenario);
    if case.model.is_some_and(|model| KNOWN.contains(&model.arch)) {
        let targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";
        return reader.set("training.lora.targets", targets);
    }
    let reads_text = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let layers = if case.model.is_some_and(reads_text) {
        estimate::linear_layers(&case).unwrap_or_default()
    } else {
        Vec::new()
    };
    if layers.is_empty() {
        reader.mark_unused(key);
    } else {
        reader.set("training.lora.targets", &layers.join(","));
    }
}

/// How attention is computed.
pub fn attention(reader: &mut KeyReader) {
    for key in ["attn_implementation", "attn_impl", "flash_attn"] {
        match reader.text(key) {
            Some("eager" | "disabled") => reader.set("training.attention", "eager"),
            Some("sdpa" | "auto") => reader.set("training.attention", "sdpa"),
            Some("flash_attention_2" | "fa2" | "flash_attn") => {
                reader.set("training.attention", "flash_attention_2");
            }
            Some(_) => reader.mark_unused(key),
            None => {}
        }
    }
    // Axolotl's former key.
    if reader.switch("flash_attention") == Some(true) {
        reader.set("training.attention", "flash_attention_2");
    }
}

/// Activation checkpointing.
pub fn checkpointing(reader: &mut KeyReader, document: &Document) {
    for key in [
        "gradient_checkpointing",
        "activation_checkpointing",
        "fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
    ] {
        // One of them is enough: FSDP's replaces the trainer's.
        if reader.switch(key) == Some(true) {
            reader.checkpointing(key);
        } else if reader
            .value(key)
            .is_some_and(|value| !matches!(value, Document::Bool(_)))
        {
            reader.mark_unused(key);
        }
    }
    // LLaMA-Factory and ms-swift checkpoint every layer by default.
    let checkpoints = document.get("finetuning_type").is_some()
        || document.get("tuner_type").is_some() && document.get("gradient_checkpointing").is_none();
    if document.get("trainer") == Some(&"megatron".into()) {
        // ms-swift on Megatron-Core recomputes only attention by default, where FlashAttention saves nothing that would be
        // recomputed.
        return match reader.text("recompute_granularity") {
            Some("full") => {
                reader.value("recompute_method");
                reader.value("recompute_num_layers");
                reader.set("training.checkpointing", "layers");
            }
            _ => reader.set("training.checkpointing", "none"),
        };
    }
    let off = reader.switch("disable_gradient_checkpointing");
    if off.is_some() || checkpoints {
        let layers = off != Some(true);
        let found = if layers { "layers" } else { "none" };
        reader.set("training.checkpointing", found);
    }
}

/// 4-bit weights of bitsandbytes.
pub fn four_bits(reader: &mut KeyReader) {
    let method = reader
        .text("quantization_method")
        .or_else(|| reader.text("quant_method"));
    let bits = reader
        .value("quantization_bit")
        .or_else(|| reader.value("quant_bits"));
    let loaded = reader.switch("load_in_4bit") == Some(true);
    if !loaded && bits != Some(&Document::Int(4)) {
        return;
    }
    if method.is_some_and(|method| method != "bnb") {
        reader.mark_unused("quantization_method");
        return reader.mark_unused("quant_method");
    }
    // These quantise scales by default; TRL and transformers do not.
    let doubles = ["base_model", "finetuning_type", "tuner_type", "train_type"];
    let doubles = doubles.iter().any(|key| reader.peek(key).is_some());
    let mut kind = if doubles { "nf4-double" } else { "nf4" };
    for key in [
        "bnb_4bit_use_double_quant",
        "use_bnb_nested_quant",
        "double_quantization",
        "bnb_config_kwargs.bnb_4bit_use_double_quant",
    ] {
        if let Some(double) = reader.switch(key) {
            kind = if double { "nf4-double" } else { "nf4" };
        }
    }
    for key in ["bnb_4bit_quant_type", "quantization_type"] {
        if reader.text(key).is_some_and(|kind| kind != "nf4") {
            reader.mark_unused(key);
        }
    }
    reader.set("training.quantization", kind);
}

/// Liger's kernels, all or one by one.
pub fn liger(reader: &mut KeyReader) {
    let whole = [
        "use_liger_kernel",
        "enable_liger_kernel",
        "liger_fused_linear_cross_entropy",
    ];
    let on = whole.map(|key| reader.switch(key) == Some(true));
    let switched = on[0] || on[1];
    // What the switch turns on, or the parts that its configuration lists.
    let mut kernel_switch = |key: &str| reader.switch(&format!("liger_kernel_config.{key}"));
    let linear = kernel_switch("fused_linear_cross_entropy").unwrap_or(true) && switched || on[2];
    let whole = kernel_switch("cross_entropy") == Some(true) && switched;
    let kernels = ["rope", "rms_norm", "layer_norm", "swiglu", "geglu"].map(kernel_switch);
    let kernels = switched && kernels.iter().all(|part| part.unwrap_or(true));
    if linear {
        reader.set("training.loss", "liger-linear");
    } else if whole || reader.switch("liger_cross_entropy") == Some(true) {
        reader.set("training.loss", "liger");
    }
    let parts = ["liger_rope", "liger_rms_norm", "liger_glu_activation"];
    let parts = parts.map(|key| reader.switch(key));
    if kernels || parts == [Some(true); 3] {
        reader.set("training.kernels", "liger");
    }
    if parts.iter().any(Option::is_some) {
        reader.value("plugins");
    }
}

/// TRL's ways to compute the loss of a language model.
pub fn loss_type(reader: &mut KeyReader) {
    match reader.text("loss_type") {
        Some("nll") => reader.set("training.loss", "library"),
        Some("chunked_nll") => reader.set("training.loss", "chunked-checkpoint"),
        Some(_) => reader.mark_unused("loss_type"),
        None => {}
    }
}

/// Packing and padding.
pub fn lengths(reader: &mut KeyReader) {
    let factory = reader.value("cutoff_len").is_some();
    for key in ["packing", "join_texts"] {
        if let Some(full) = reader.switch(key) {
            reader.set("data.padding_mask", if full { "off" } else { "on" });
            if full && factory {
                // LLaMA-Factory takes one token off where it packs.
                let sequence = reader.imported.scenario.data.sequence;
                let sequence = sequence.saturating_sub(1).max(1);
                reader.set("data.sequence", &sequence.to_string());
            }
        }
    }
    if reader
        .text("packing_strategy")
        .is_some_and(|strategy| strategy != "wrapped")
    {
        reader.mark_unused("packing_strategy");
    }
    // Axolotl's attention keeps packed samples apart without a mask; unpacked, it pads.
    if let Some(packed) = reader.switch("sample_packing") {
        reader.set("data.packing", if packed { "on" } else { "off" });
        if packed {
            reader.set("data.padding_mask", "off");
        }
    }
    reader.switch("pad_to_sequence_len");
}
