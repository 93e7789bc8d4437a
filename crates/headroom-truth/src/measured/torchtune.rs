//! torchtune's records: its own decoder and its recipes' ways (github.com/pytorch/torchtune at bd2a0fc7).

use super::Record;
use headroom_core::network::{Libraries, Logits};
use headroom_scenario::{Optimizer, Quantization, Training};

pub(super) fn is_record(record: &Record) -> bool {
    record.framework.starts_with("torchtune")
}

/// Recipes of the first half of 2024 cut logits by one token and keep them by name through backward; later ones move the labels
/// and delete the logits.
fn early(record: &Record) -> bool {
    record.framework.contains_any(&["early 2024", "may 2024"])
}

/// How its decoder and its recipes differ from transformers' newest release.
pub(super) fn libraries(record: &Record, newest: Libraries) -> Libraries {
    if !is_record(record) {
        return newest;
    }
    Libraries {
        repeats_keys: true,
        // `compile: True` is of the layers and of the loss.
        compiles_loss: true,
        offloads_activations: record.activation_checkpointing.contains("offload"),
        logits: if early(record) {
            Logits::KeptShifted
        } else {
            newest.logits
        },
        ..newest
    }
}

pub(super) fn amend(record: &Record, training: &mut Training) -> Result<(), String> {
    if record.optimizer.contains("bnb/torchao") {
        return Err("the record does not say whose 8-bit AdamW it is".into());
    }
    if let Some(lora) = &mut training.lora {
        // `LoRALinear` keeps its matrices in the model's type.
        lora.fp32_adapters = false;
        if training.quantization == Quantization::Nf4 {
            // `quantize_base` makes torchao's `NF4Tensor` (`to_nf4` in torchtune/modules/peft/lora.py).
            training.quantization = Quantization::Nf4Ao;
        }
    }
    training.keep_outputs = early(record);
    // Its configurations set `fused: True` for PyTorch's AdamW.
    if training.optimizer == Optimizer::AdamW {
        training.optimizer = Optimizer::AdamWFused;
    }
    Ok(())
}
