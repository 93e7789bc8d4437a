//! A recipe's file of torchtune.

use super::Imported;
use super::take::Take;
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

/// The default scenario with what the file says.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    take.trainer("torchtune");
    if document.get("model").is_none() {
        take.model("model._component_", "", None);
    }
    model(&mut take);
    take.copy("batch_size", "data.micro_batch");
    take.copy("gradient_accumulation_steps", "training.accumulation");
    take.copy("tokenizer.max_seq_len", "data.sequence");
    take.optimizer("optimizer._component_", "optimizer.");
    take.copy("optimizer_in_bwd", "training.optimizer_in_backward");
    take.clip("clip_grad_norm");
    take.checkpointing("enable_activation_checkpointing");
    if take.switch("enable_activation_offloading") == Some(true) {
        take.set("training.checkpointing", "offload");
    }
    match take.text("dtype") {
        Some("bf16") => take.set("training.precision", "bf16"),
        Some("fp32") => take.set("training.precision", "fp32"),
        Some(_) => take.leave("dtype"),
        None => {}
    }
    match take.text("loss._component_") {
        Some("torchtune.modules.loss.CEWithChunkedOutputLoss") => {
            take.set("training.loss", "chunked-loss");
            take.copy("loss.num_output_chunks", "training.loss_chunks");
        }
        Some("torch.nn.CrossEntropyLoss") | None => {}
        Some(_) => take.leave("loss._component_"),
    }
    if take.switch("dataset.packed") == Some(false) {
        take.set("data.padding_mask", "on");
    }
    if take.switch("fsdp_cpu_offload") == Some(true) {
        take.set("parallel.strategy", "fsdp2");
        take.set("parallel.offload", "parameters");
    }
    if let Some(reshard) = take.switch("fsdp_reshard_after_forward") {
        take.set("parallel.strategy", "fsdp2");
        take.set("parallel.reshard", if reshard { "on" } else { "off" });
    }
    take.finish(&[
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
    // `mistral_7b` is the first of several, `phi4_14b` says its size besides.
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

/// The sizes that a builder is given.
fn with_sizes(take: &mut Take, id: &str) {
    take.set("model.id", id);
    let mut sizes = Vec::new();
    let mut size = |take: &mut Take, key: &str, name: &str| {
        if let Some(Document::Int(size)) = take.value(&format!("model.{key}")) {
            sizes.push(format!("{name}={size}"));
            return Some(*size);
        }
        None
    };
    size(take, "vocab_size", "vocab");
    size(take, "num_layers", "layers");
    let heads = size(take, "num_heads", "heads");
    size(take, "num_kv_heads", "kv");
    let hidden = size(take, "embed_dim", "hidden");
    size(take, "intermediate_dim", "ffn");
    size(take, "max_seq_len", "ctx");
    if let (Some(hidden), Some(heads)) = (hidden, heads.filter(|heads| *heads > 0)) {
        sizes.push(format!("head_dim={}", hidden / heads));
    }
    take.set("model.dims", &sizes.join(","));
}

/// The builder's name is the model's; with `lora_` before it, there are adapters.
fn model(take: &mut Take) {
    let Some(component) = take.text("model._component_") else {
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
        Some(id) if found.is_none() => with_sizes(take, id),
        _ => take.model("model._component_", name, found),
    }
    if adapters.is_none() {
        return;
    }
    // Adapters are made as the weights are.
    let fp32 = take.text("dtype") == Some("fp32");
    take.lora().fp32_adapters = fp32;
    take.copy("model.lora_rank", "training.lora.rank");
    take.copy("model.lora_dropout", "training.lora.dropout");
    let mut targets = Vec::new();
    if let Some(Document::List(names)) = take.value("model.lora_attn_modules") {
        for name in names {
            match name {
                Document::Text(target) if target == "output_proj" => targets.push("o_proj"),
                Document::Text(target) => targets.push(target),
                _ => take.leave("model.lora_attn_modules"),
            }
        }
    }
    if take.switch("model.apply_lora_to_mlp") == Some(true) {
        targets.extend(["gate_proj", "up_proj", "down_proj"]);
    }
    if take.switch("model.apply_lora_to_output") == Some(true) {
        take.leave("model.apply_lora_to_output");
    }
    if !targets.is_empty() {
        take.set("training.lora.targets", &targets.join(","));
    }
    if qlora || take.switch("model.quantize_base") == Some(true) {
        take.set("training.quantization", "nf4-double");
    }
}
