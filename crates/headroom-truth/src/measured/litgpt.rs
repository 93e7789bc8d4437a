//! LitGPT's records: its own networks, whose sizes are in its `config.py`.

use serde_json::Value;

use super::text;
use headroom_core::nets::{self, Net, Sizes};
use headroom_scenario::Training;

/// `tutorials/resource-tables.md` came with commit 0cc02afa of October 2023; the table of `config_hub/finetune`
/// in the course of 2024. The former's runs begin with the longest sample (`longest_seq_ix`).
pub(super) fn early(record: &Value) -> bool {
    text(record, "framework").contains("2023")
}

pub(super) fn is_record(record: &Value) -> bool {
    text(record, "source_repo_or_url").contains("litgpt")
}

/// Sizes and switches by a part of the model's name: layers, hidden, heads, groups, head size, ffn, padded vocabulary,
/// turned part of a head.
type Row = (&'static str, [u64; 8], &'static [&'static str]);

const PHI: &[&str] = &[
    "bias",
    "head_bias",
    "layer_norm",
    "parallel",
    "shared_norm",
    "plain_mlp",
];
const MODELS: &[Row] = &[
    ("phi-1_5", [24, 2048, 32, 32, 64, 8192, 51_200, 32], PHI),
    ("phi-2", [32, 2560, 32, 32, 80, 10_240, 51_200, 32], PHI),
    ("phi-3", [32, 3072, 32, 32, 96, 8192, 32_064, 96], &[]),
    (
        "stablelm-base-alpha-3b",
        [16, 4096, 32, 32, 128, 16_384, 50_688, 32],
        &["bias", "layer_norm", "parallel", "plain_mlp"],
    ),
    (
        "llama-2-7b",
        [32, 4096, 32, 32, 128, 11_008, 32_000, 128],
        &[],
    ),
    (
        "llama-2-13b",
        [40, 5120, 40, 40, 128, 13_824, 32_000, 128],
        &[],
    ),
    (
        "llama-3-8b",
        [32, 4096, 32, 8, 128, 14_336, 128_256, 128],
        &[],
    ),
    (
        "llama-3.1-8b",
        [32, 4096, 32, 8, 128, 14_336, 128_256, 128],
        &[],
    ),
    (
        "llama-3.2-1b",
        [16, 2048, 32, 8, 64, 8192, 128_256, 64],
        &[],
    ),
    (
        "llama-3.2-3b",
        [28, 3072, 24, 8, 128, 8192, 128_256, 128],
        &[],
    ),
    (
        "mistral-7b",
        [32, 4096, 32, 8, 128, 14_336, 32_000, 128],
        &[],
    ),
    (
        "gemma-2b",
        [18, 2048, 8, 1, 256, 16_384, 256_000, 256],
        &["gelu"],
    ),
    (
        "gemma-7b",
        [28, 3072, 16, 16, 256, 24_576, 256_000, 256],
        &["gelu"],
    ),
    (
        "gemma-2-2b",
        [26, 2304, 8, 4, 256, 9216, 256_000, 256],
        &["gelu", "norms_after", "soft_caps"],
    ),
];

pub(super) fn network(record: &Value) -> Result<Box<dyn Net>, String> {
    let model = text(record, "model");
    let (_, numbers, switches) = MODELS
        .iter()
        .find(|(name, ..)| model.contains(name))
        .ok_or_else(|| format!("LitGPT's `{model}` is not listed"))?;
    let names = [
        "layers", "hidden", "heads", "kv", "head_dim", "ffn", "vocab", "rope",
    ];
    let mut sizes = Sizes::default();
    for (name, value) in names.iter().zip(numbers) {
        sizes.set(name, *value);
    }
    for name in *switches {
        sizes.set(name, 1);
    }
    let task = text(record, "task");
    let adapter = task.contains("adapter");
    sizes.set("prompts", u64::from(adapter));
    sizes.set("scales", u64::from(task.contains("adapter v2")));
    sizes.set("wide_weight", u64::from(early(record)));
    sizes.set("copies_padding", u64::from(early(record)));
    nets::build("litgpt", &sizes).map_err(|error| error.to_string())
}

/// What its training scripts do besides: `logits` and `loss` are names of the loop and outlive backward.
pub(super) fn amend(record: &Value, training: &mut Training) {
    let task = text(record, "task");
    training.keep_outputs = true;
    if early(record) {
        // The longest sample comes first, and only once: one micro-batch shows the peak.
        // Over several GPUs whole gradients are kept from one to the next.
        let alone = record["n_gpus"].as_u64() == Some(1);
        training.accumulation = if alone { 1 } else { 2 };
    }
    if let Some(lora) = &mut training.lora {
        // `lora_dropout` of finetune/lora.py and of the files of config_hub.
        let tenth = ["gemma-7b", "gemma2-2b", "gemma-2-2b"];
        let model = text(record, "model");
        lora.dropout = if tenth.iter().any(|name| model.contains(name)) {
            0.1
        } else {
            0.05
        };
        lora.fp32_adapters = false;
    }
    if task.contains("adapter") {
        // `adapter_filter`: v2 trains norms too.
        let names: &[&str] = if task.contains("adapter v2") {
            &["adapter_", "gating_factor", "norm_1", "norm_2", "ln_f"]
        } else {
            &["adapter_", "gating_factor"]
        };
        training.train_only = names.iter().map(|name| (*name).to_string()).collect();
    }
}
