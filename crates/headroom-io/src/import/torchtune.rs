//! A recipe's file of torchtune.

use super::Imported;
use super::take::KeyReader;
use crate::export;
use headroom_base::document::Document;
use headroom_catalog as catalog;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let component = |key: &str| {
        let group = document.get(key)?;
        group.get("_component_")
    };
    // Recipes of PPO have a policy in place of the model.
    component("model").is_some() || component("tokenizer").is_some()
}

/// The default scenario with the file's settings.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    reader.trainer("torchtune");
    if document.get("model").is_none() {
        reader.model("model._component_", "", None);
    }
    model(&mut reader);
    reader.copy("batch_size", "data.micro_batch");
    reader.copy("gradient_accumulation_steps", "training.accumulation");
    reader.copy("tokenizer.max_seq_len", "data.sequence");
    reader.optimizer("optimizer._component_", "optimizer.");
    reader.copy("optimizer_in_bwd", "training.optimizer_in_backward");
    reader.clip("clip_grad_norm");
    reader.checkpointing("enable_activation_checkpointing");
    if reader.switch("enable_activation_offloading") == Some(true) {
        reader.set("training.checkpointing", "offload");
    }
    match reader.text("dtype") {
        Some("bf16") => reader.set("training.precision", "bf16"),
        Some("fp32") => reader.set("training.precision", "fp32"),
        Some(_) => reader.mark_unused("dtype"),
        None => {}
    }
    match reader.text("loss._component_") {
        Some("torchtune.modules.loss.CEWithChunkedOutputLoss") => {
            reader.set("training.loss", "chunked-loss");
            reader.copy("loss.num_output_chunks", "training.loss_chunks");
        }
        Some("torch.nn.CrossEntropyLoss") => reader.set("training.loss", "library"),
        None => {}
        Some(_) => reader.mark_unused("loss._component_"),
    }
    if reader.switch("dataset.packed") == Some(false) {
        reader.set("data.padding_mask", "on");
    }
    if reader.switch("fsdp_cpu_offload") == Some(true) {
        reader.set("parallel.strategy", "fsdp2");
        reader.set("parallel.offload", "parameters");
    }
    if let Some(reshard) = reader.switch("fsdp_reshard_after_forward") {
        reader.set("parallel.strategy", "fsdp2");
        reader.set("parallel.reshard", if reshard { "on" } else { "off" });
    }
    reader.finish(&[
        "output_dir",
        "tokenizer",
        "dataset",
        "seed",
        "shuffle",
        "checkpointer",
        "resume_from_checkpoint",
        "epochs",
        "max_steps_per_epoch",
        "optimizer.lr",
        "optimizer.weight_decay",
        "lr_scheduler",
        "device",
        "metric_logger",
        "log_every_n_steps",
        "log_peak_memory_stats",
        "profiler",
        "model.lora_alpha",
        "model.max_seq_len",
    ])
}

/// A builder's name without what does not change sizes is an entry's id, but for the signs between.
fn by_builder(name: &str) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let name = name.strip_suffix("_instruct").unwrap_or(name);
    let name = plain(name.strip_suffix("_base").unwrap_or(name));
    let entries = catalog::models().iter();
    let same = entries.clone().find(|entry| plain(entry.id) == name);
    // `mistral_7b` is the first of several, `phi4_14b` ends with its size.
    let longer = || {
        entries
            .clone()
            .find(|entry| plain(entry.id).starts_with(&name))
    };
    let shorter = || match name.as_str() {
        "phi414b" => catalog::model("phi-4"),
        "llama4scout17b16e" => catalog::model("llama-4-scout"),
        "llama4maverick17b128e" => catalog::model("llama-4-maverick"),
        _ => None,
    };
    let found = same.or_else(longer).or_else(shorter);
    found.map(|entry| entry.id)
}

/// The entry that a builder without sizes of its own is like.
fn sizes_of_builder(name: &str) -> Option<&'static str> {
    match name {
        "llama2" => Some("llama-2-7b"),
        "llama3" => Some("llama-3-8b"),
        "llama3_1" => Some("llama-3.1-8b"),
        "qwen2" => Some("qwen2-7b"),
        "mistral" => Some("mistral-7b-v0.1"),
        _ => None,
    }
}

/// The sizes that are passed to a builder.
fn with_sizes(reader: &mut KeyReader, id: &str) {
    reader.set("model.id", id);
    let mut sizes = Vec::new();
    let mut size = |reader: &mut KeyReader, key: &str, name: &str| {
        if let Some(Document::Int(size)) = reader.value(&format!("model.{key}")) {
            sizes.push(format!("{name}={size}"));
            return Some(*size);
        }
        None
    };
    size(reader, "vocab_size", "vocab");
    size(reader, "num_layers", "layers");
    let heads = size(reader, "num_heads", "heads");
    size(reader, "num_kv_heads", "kv");
    let hidden = size(reader, "embed_dim", "hidden");
    size(reader, "intermediate_dim", "ffn");
    size(reader, "max_seq_len", "ctx");
    if let (Some(hidden), Some(heads)) = (hidden, heads.filter(|heads| *heads > 0)) {
        sizes.push(format!("head_dim={}", hidden / heads));
    }
    reader.set("model.dims", &sizes.join(","));
}

/// The builder's name is the model's; the prefix `lora_` means adapters.
fn model(reader: &mut KeyReader) {
    let Some(component) = reader.text("model._component_") else {
        return;
    };
    let builder = component.rsplit('.').next().unwrap_or(component);
    let qlora = builder.starts_with("qlora_");
    let adapters = builder
        .strip_prefix("lora_")
        .or_else(|| builder.strip_prefix("qlora_"));
    let name = adapters.unwrap_or(builder);
    let found = export::torchtune_model(name).or_else(|| by_builder(name));
    match sizes_of_builder(name) {
        Some(id) if found.is_none() => with_sizes(reader, id),
        _ => reader.model("model._component_", name, found),
    }
    if adapters.is_none() {
        return;
    }
    // Adapters are made as the weights are.
    let fp32 = reader.text("dtype") == Some("fp32");
    reader.set(
        "training.lora.fp32_adapters",
        if fp32 { "on" } else { "off" },
    );
    reader.copy("model.lora_rank", "training.lora.rank");
    reader.copy("model.lora_dropout", "training.lora.dropout");
    let mut targets = Vec::new();
    if let Some(Document::List(names)) = reader.value("model.lora_attn_modules") {
        for name in names {
            match name {
                Document::Text(target) if target == "output_proj" => targets.push("o_proj"),
                Document::Text(target) => targets.push(target),
                _ => reader.mark_unused("model.lora_attn_modules"),
            }
        }
    }
    if reader.switch("model.apply_lora_to_mlp") == Some(true) {
        targets.extend(["gate_proj", "up_proj", "down_proj"]);
    }
    if reader.switch("model.apply_lora_to_output") == Some(true) {
        reader.mark_unused("model.apply_lora_to_output");
    }
    if !targets.is_empty() {
        reader.set("training.lora.targets", &targets.join(","));
    }
    if qlora || reader.switch("model.quantize_base") == Some(true) {
        // `quantize_base` makes torchao's `NF4Tensor` (`to_nf4` in torchtune/modules/peft/lora.py).
        reader.set("training.quantization", "nf4-ao");
    }
}
