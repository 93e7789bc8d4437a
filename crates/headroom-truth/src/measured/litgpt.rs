//! LitGPT's records: its own networks.

use super::Record;
use super::repository::listed;
use headroom_catalog as catalog;
use headroom_core::network::{self as nets, Net, Sizes};
use headroom_scenario::Training;

/// `tutorials/resource-tables.md` came with commit 0cc02afa of October 2023; the table of `config_hub/finetune`
/// in the course of 2024. The former's runs begin with the longest sample (`longest_seq_ix`).
pub(super) fn early(record: &Record) -> bool {
    record.framework.contains("2023")
}

pub(super) fn is_record(record: &Record) -> bool {
    record.source_repo_or_url.contains("litgpt")
}

pub(super) fn network(record: &Record) -> Result<Box<dyn Net>, String> {
    let repository = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = repository(&record.model);
    let of_another_owner = || {
        let mut models = catalog::models().iter();
        models.find(|entry| repository(entry.hf_id) == name)
    };
    let not_listed = || format!("LitGPT's `{}` is not listed", &*record.model);
    let entry = listed(&record.model)
        .or_else(of_another_owner)
        .ok_or_else(not_listed)?;
    // Switches and the turned part of a head, as in its `config.py`.
    let (switches, rope): (&[&str], _) = match entry.arch {
        "phi" => (
            &[
                "bias",
                "head_bias",
                "layer_norm",
                "parallel",
                "shared_norm",
                "plain_mlp",
            ],
            Some(32),
        ),
        "gpt_neox" => (
            &["bias", "layer_norm", "parallel", "plain_mlp"],
            entry.size("rotary"),
        ),
        "phi3" | "llama" | "mistral" => (&[], None),
        "gemma" => (&["gelu"], None),
        "gemma2" => (&["gelu", "norms_after", "soft_caps"], None),
        _ => return Err(not_listed()),
    };
    let mut sizes = Sizes::default();
    for name in [
        "layers", "hidden", "heads", "kv", "head_dim", "ffn", "vocab",
    ] {
        sizes.set(name, entry.size(name).unwrap_or(0));
    }
    sizes.set("rope", rope.unwrap_or(sizes.or("head_dim", 0)));
    for name in switches {
        sizes.set(name, 1);
    }
    let is_adapter = record.task.contains("adapter");
    sizes.set("prompts", u64::from(is_adapter));
    sizes.set("scales", u64::from(record.task.contains("adapter v2")));
    sizes.set("wide_weight", u64::from(early(record)));
    sizes.set("copies_padding", u64::from(early(record)));
    nets::build("litgpt", &sizes).map_err(|error| error.to_string())
}

/// Habits of its training scripts. `logits` and `loss` are variables of the loop and outlive backward.
pub(super) fn amend(record: &Record, training: &mut Training) {
    training.keep_outputs = true;
    if early(record) {
        // The longest sample comes first, and only once: one micro-batch shows the peak.
        // Over several GPUs unsharded gradients are kept from one to the next.
        training.accumulation = if record.is_alone() { 1 } else { 2 };
    }
    if let Some(lora) = &mut training.lora {
        // `lora_dropout` of finetune/lora.py and of the files of config_hub.
        let tenth = ["gemma-7b", "gemma2-2b", "gemma-2-2b"];
        lora.dropout = if record.model.contains_any(&tenth) {
            0.1
        } else {
            0.05
        };
        lora.fp32_adapters = false;
    }
    if record.task.contains("adapter") {
        // `adapter_filter`: v2 trains norms too.
        let names: &[&str] = if record.task.contains("adapter v2") {
            &["adapter_", "gating_factor", "norm_1", "norm_2", "ln_f"]
        } else {
            &["adapter_", "gating_factor"]
        };
        training.train_only = names.iter().map(|name| (*name).to_string()).collect();
    }
}
