//! QLoRA: adapters on a 4-bit base.

use super::{Cost, Group, Move, Results, with};
use super::{
    adapted, attention_layers, by_trl, copies, has_bf16, nvidia, own_loss, quantizable, writes_text,
};
use headroom_scenario::{Precision, Quantization};

pub const MOVE: Move = Move {
    id: "qlora",
    title: "QLoRA: adapters on a 4-bit base",
    group: Group::Adapters,
    what: "The frozen base is stored in NF4 with double quantization; matrices are dequantized to bf16 one at a time, on use.",
    needs: "A model that writes text, whose attention layers have usual names; an NVIDIA GPU with bf16.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Slower: every matrix is dequantized in the forward and the backward pass.",
    quality: "As with LoRA, plus a little quantization noise from the base.",
    source: "arXiv 2305.14314; bitsandbytes",
    caveat: "Merged weights are those of the quantized base.",
    code: "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", bnb_4bit_use_double_quant=True)",
    apply: |run| {
        let possible = run.training.quantization == Quantization::None
            && writes_text(run)
            && !run.training.qat
            && quantizable(run)
            && has_bf16(run)
            && nvidia(run)
            && !copies(run);
        if !possible {
            return None;
        }
        let targets = match &run.training.lora {
            Some(lora) => lora.targets.clone(),
            None => attention_layers(run)?,
        };
        let kept = own_loss(run) || !by_trl(run);
        Some(with(run, |changed| {
            if changed.training.lora.is_none() {
                adapted(changed, targets);
            }
            changed.training.precision = Precision::AmpBf16OnBf16;
            changed.training.quantization = Quantization::Nf4Double;
            // TRL casts adapters on a 4-bit base to bf16 after PEFT has cast them to fp32.
            if let Some(lora) = &mut changed.training.lora {
                lora.fp32_adapters &= kept;
            }
        }))
    },
};
