//! torchtune's records: its own decoder and its recipes' ways (github.com/pytorch/torchtune at bd2a0fc7).

use serde_json::Value;

use super::text;
use headroom_core::nets::{Libraries, Logits};
use headroom_scenario::{Optimizer, Training};

pub(super) fn is_record(record: &Value) -> bool {
    text(record, "framework").starts_with("torchtune")
}

/// Recipes of the first half of 2024 cut logits by one token and keep them by name through backward; later ones move the labels
/// and delete the logits.
fn early(record: &Value) -> bool {
    let framework = text(record, "framework");
    ["early 2024", "may 2024"]
        .iter()
        .any(|date| framework.contains(date))
}

/// What its decoder and its recipes do otherwise than transformers' newest release.
pub(super) fn libraries(record: &Value, newest: Libraries) -> Libraries {
    if !is_record(record) {
        return newest;
    }
    Libraries {
        repeats_keys: true,
        // `compile: True` is of the layers and of the loss.
        compiles_loss: true,
        offloads_activations: text(record, "activation_checkpointing").contains("offload"),
        logits: if early(record) {
            Logits::KeptShifted
        } else {
            newest.logits
        },
        ..newest
    }
}

pub(super) fn amend(record: &Value, training: &mut Training) -> Result<(), String> {
    if text(record, "optimizer").contains("bnb/torchao") {
        return Err("the record does not say whose 8-bit AdamW it is".into());
    }
    if let Some(lora) = &mut training.lora {
        // `LoRALinear` keeps its matrices in the model's type.
        lora.fp32_adapters = false;
    }
    training.keep_outputs = early(record);
    // Where its configurations name PyTorch's AdamW they ask for `fused: True`.
    if training.optimizer == Optimizer::AdamW {
        training.optimizer = Optimizer::AdamWFused;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::measured::{GIB, predict};

    /// A row of the README's table of optimization flags: Llama 3.2 3B on an A100, two samples packed to 4096 tokens.
    #[track_caller]
    fn check(compile: bool, loss: &str, checkpointing: &str, other: &str, gib: f64) {
        let record = serde_json::json!({
            "model": "meta-llama/Llama-3.2-3B", "framework": "torchtune 0.5-0.6, torch 2.6", "gpu": "A100", "n_gpus": 1,
            "task": "full finetune", "precision": "bf16", "optimizer": "torch.optim.AdamW", "micro_batch": 2, "seq_len": 4096,
            "compile": compile, "fused_or_chunked_ce": loss, "activation_checkpointing": checkpointing, "other": other,
            "metric": "max_active", "measured_gib": gib,
        });
        let predicted = predict(&record).unwrap().allocated as f64 / GIB;
        assert!((predicted / gib - 1.0).abs() < 0.01, "{predicted} {gib}");
    }

    #[test]
    fn recipes_need_what_was_measured() {
        let chunks = "CEWithChunkedOutputLoss";
        check(false, "none", "none", "", 60.0);
        check(true, chunks, "none", "", 42.9);
        check(true, chunks, "full", "", 24.9);
        check(true, chunks, "full", "optimizer_in_bwd=True", 23.1);
        let offloaded = "full + CPU activation offloading";
        check(true, chunks, offloaded, "optimizer_in_bwd=True", 21.8);
    }
}
