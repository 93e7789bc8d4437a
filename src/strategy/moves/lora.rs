//! LoRA on the attention layers, over a frozen bf16 base.

use super::{Cost, Group, Move, with};
use super::{adapted, attention_layers, has_bf16};

pub const MOVE: Move = Move {
    id: "lora",
    title: "LoRA on the attention layers, over a frozen bf16 base",
    group: Group::Adapters,
    what: "Trains low-rank adapters; the base has no gradients and no states.",
    needs: "A network with known attention layers; a card with bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Faster backward: no gradients of weights.",
    quality: "Often enough for fine-tuning, never for pre-training; learning rate about ten times higher.",
    source: "arXiv 2106.09685; arXiv 2405.09673 (LoRA learns less and forgets less)",
    caveat: "Activations mostly stay.",
    code: "peft.get_peft_model(model, LoraConfig(...))",
    apply: |s| {
        let targets = attention_layers(s)?;
        (s.training.lora.is_none() && has_bf16(s)).then(|| with(s, |it| adapted(it, targets)))
    },
};
