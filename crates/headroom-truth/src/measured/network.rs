//! The network that a record names.

use serde_json::Value;

use super::{diffusion, litgpt, megatron, text, vision};
use headroom_catalog::{self as catalog, ModelEntry};
use headroom_core::nets::{self, Net, Sizes};

/// The network and whether it reads tokens.
pub(super) fn network(record: &Value) -> Result<(Box<dyn Net>, bool), String> {
    let name = record["model"]
        .as_str()
        .ok_or("the record names no model")?;
    let lower = name.to_lowercase();
    if litgpt::is_record(record) {
        return litgpt::network(record).map(|net| (net, true));
    }
    // What the record says of sizes, by our names and by its own.
    let given = |names: &[(&str, &str)]| {
        let mut sizes = Sizes::default();
        for (name, from) in names {
            if let Some(size) = record["model_dims"][*from].as_u64() {
                sizes.set(name, size);
            }
        }
        sizes
    };
    let without_words = vision::network(record, &lower).or_else(|| diffusion::network(record));
    if let Some(net) = without_words {
        return net.map(|net| (net, false));
    }
    if lower.contains("bert-large") || lower.contains("bert_large") {
        let mut sizes = Sizes::default();
        for (key, value) in [
            ("hidden", 1024),
            ("layers", 24),
            ("heads", 16),
            ("ffn", 4096),
            ("vocab", 30_522),
            ("ctx", 512),
            ("classes", 2),
            ("head=cls", 1),
        ] {
            sizes.set(key, value);
        }
        return built("bert", &sizes);
    }
    if first_qwen(&lower) {
        // Every head of queries has one of keys.
        let sizes = given(&[
            ("hidden", "hidden"),
            ("layers", "layers"),
            ("heads", "heads"),
            ("kv", "heads"),
            ("ffn", "ffn"),
            ("vocab", "vocab"),
        ]);
        return built("qwen", &sizes);
    }
    if let Some(entry) = listed(&lower) {
        let sizes = Sizes::from_entry(entry);
        if megatron::is_record(record) {
            return megatron::network(record, entry.arch, &sizes).map(|net| (net, true));
        }
        let is_titan = text(record, "framework").starts_with("torchtitan");
        let architecture = match entry.arch {
            "llama" if is_titan => "torchtitan_llama3",
            other => other,
        };
        return built(architecture, &sizes);
    }
    // Not listed, but a known family whose sizes the record gives.
    let family = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma2"]
        .into_iter()
        .find(|family| lower.replace(['-', '.'], "").contains(family))
        .ok_or_else(|| format!("the model `{name}` is not in the catalogue"))?;
    let mut sizes = given(&[
        ("hidden", "hidden"),
        ("layers", "layers"),
        ("heads", "heads"),
        ("kv", "kv_heads"),
        ("ffn", "ffn"),
        ("vocab", "vocab"),
        ("head_dim", "head_dim"),
    ]);
    if record["model_dims"]["tied"].as_bool() == Some(true) {
        sizes.set("tied", 1);
    }
    if megatron::is_record(record) {
        return megatron::network(record, family, &sizes).map(|net| (net, true));
    }
    built(family, &sizes)
}

/// Qwen-1.8B to Qwen-72B of 2023, without those that see.
pub(super) fn first_qwen(name: &str) -> bool {
    name.strip_prefix("qwen/qwen-")
        .is_some_and(|size| size.starts_with(|c: char| c.is_ascii_digit()))
}

fn built(architecture: &str, sizes: &Sizes) -> Result<(Box<dyn Net>, bool), String> {
    let net = nets::build(architecture, sizes).map_err(|error| error.to_string())?;
    Ok((net, true))
}

/// The catalogue's entry of a repository, whose copies by other owners and quantised forms have its sizes.
fn listed(name: &str) -> Option<&'static ModelEntry> {
    const COPIES: &[(&str, &str)] = &[
        ("nousresearch/llama-2-70b-hf", "meta-llama/llama-2-70b-hf"),
        ("thebloke/llama-2-70b-gptq", "meta-llama/llama-2-70b-hf"),
        (
            "techxgenus/meta-llama-3-8b-gptq",
            "meta-llama/meta-llama-3-8b",
        ),
        ("unsloth/mistral-7b-v0.2", "mistralai/mistral-7b-v0.1"),
        (
            "thebloke/mixtral-8x7b-instruct-v0.1-gptq",
            "mistralai/mixtral-8x7b-v0.1",
        ),
        (
            "mistralai/mixtral-8x7b-instruct-v0.1",
            "mistralai/mixtral-8x7b-v0.1",
        ),
        // Tuned further from Mistral Small 3.1, by their model cards.
        (
            "mistralai/devstral-small-2507",
            "mistralai/mistral-small-24b-base-2501",
        ),
        (
            "mistralai/magistral-small-2507",
            "mistralai/mistral-small-24b-base-2501",
        ),
    ];
    let name = COPIES
        .iter()
        .find(|(copy, _)| *copy == name)
        .map_or(name, |(_, of)| of);
    catalog::models()
        .iter()
        .find(|entry| entry.hf_id.eq_ignore_ascii_case(name))
}
