//! QLoRA: adapters over a base in four bits.

use super::{Cost, Group, Move, with};
use super::{adapted, attention_layers, has_bf16, language_model, nvidia};
use crate::scenario::{Precision, Quantization};

pub const MOVE: Move = Move {
    id: "qlora",
    title: "QLoRA: adapters over a base in four bits",
    group: Group::Adapters,
    what: "The frozen base is stored in NF4 with double quantisation; one matrix at a time exists in bf16 while it is used.",
    needs: "A language model with known attention layers; an NVIDIA card with bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Slower: every matrix is dequantised in forward and in backward.",
    quality: "As LoRA, with a little noise from the base.",
    source: "arXiv 2305.14314; bitsandbytes",
    caveat: "Merged weights are those of the quantised base.",
    code: "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", bnb_4bit_use_double_quant=True)",
    apply: |s| {
        let possible = s.training.quantization == Quantization::None
            && language_model(s)
            && has_bf16(s)
            && nvidia(s);
        if !possible {
            return None;
        }
        let targets = match &s.training.lora {
            Some(lora) => lora.targets.clone(),
            None => attention_layers(s)?,
        };
        Some(with(s, |it| {
            if it.training.lora.is_none() {
                adapted(it, targets);
            }
            it.training.precision = Precision::AmpBf16OnBf16;
            it.training.quantization = Quantization::Nf4Double;
        }))
    },
};
