//! The network that a record names.

use serde_json::Value;

use super::repository::{first_qwen, listed};
use super::{Record, detection, diffusion, litgpt, megatron, segmentation, vision, yolo};
use headroom_core::network::{self as nets, Net, Sizes};

/// The network and whether it reads tokens.
pub(super) fn network(record: &Record) -> Result<(Box<dyn Net>, bool), String> {
    let name = &*record.model;
    if name.is_empty() {
        return Err("the record names no model".into());
    }
    if litgpt::is_record(record) {
        return litgpt::network(record).map(|net| (net, true));
    }
    let without_tokens = segmentation::network(record)
        .or_else(|| detection::network(record))
        .or_else(|| yolo::network(record))
        .or_else(|| vision::network(record, name))
        .or_else(|| diffusion::network(record));
    if let Some(net) = without_tokens {
        return net.map(|net| (net, false));
    }
    if record.model.contains_any(&["bert-large", "bert_large"]) {
        let sizes = Sizes::from([
            ("hidden", 1024),
            ("layers", 24),
            ("heads", 16),
            ("ffn", 4096),
            ("vocab", 30_522),
            ("ctx", 512),
            ("classes", 2),
            ("head=cls", 1),
        ]);
        return built("bert", &sizes);
    }
    if let Some(entry) = listed(name).filter(|_| !first_qwen(name)) {
        let sizes = Sizes::from_entry(entry);
        if megatron::is_record(record) {
            return megatron::network(record, entry.arch, &sizes).map(|net| (net, true));
        }
        let is_titan = record.framework.starts_with("torchtitan");
        let architecture = match entry.arch {
            "llama" if is_titan => "torchtitan_llama3",
            other => other,
        };
        return built(architecture, &sizes);
    }
    // Not listed, but a known family whose sizes the record gives.
    let plain = name.replace(['-', '.'], "");
    let families = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma2"];
    let mut known = families.into_iter().filter(|family| plain.contains(family));
    let family = first_qwen(name).then_some("qwen").or_else(|| known.next());
    let not_listed = || {
        format!(
            "the model `{}` is not in the catalogue",
            record.model.written
        )
    };
    let family = family.ok_or_else(not_listed)?;
    let mut sizes = Sizes::default();
    for (name, written) in [
        ("hidden", "hidden"),
        ("layers", "layers"),
        ("heads", "heads"),
        // Every head of Qwen's queries has one of keys.
        (
            "kv",
            if family == "qwen" {
                "heads"
            } else {
                "kv_heads"
            },
        ),
        ("ffn", "ffn"),
        ("vocab", "vocab"),
        ("head_dim", "head_dim"),
    ] {
        if let Some(size) = record.dim(written) {
            sizes.set(name, size);
        }
    }
    if record.model_dims.get("tied").and_then(Value::as_bool) == Some(true) {
        sizes.set("tied", 1);
    }
    if megatron::is_record(record) {
        return megatron::network(record, family, &sizes).map(|net| (net, true));
    }
    built(family, &sizes)
}

fn built(architecture: &str, sizes: &Sizes) -> Result<(Box<dyn Net>, bool), String> {
    let net = nets::build(architecture, sizes).map_err(|error| error.to_string())?;
    Ok((net, true))
}
