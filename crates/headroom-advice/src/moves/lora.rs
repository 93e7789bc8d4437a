//! LoRA on the attention layers, on a frozen bf16 base.

use super::{Cost, Group, Move, Results, with};
use super::{adapted, attention_layers, has_bf16};
use headroom_scenario::LowPrecision;

pub const MOVE: Move = Move {
    id: "lora",
    title: "LoRA on the attention layers, on a frozen bf16 base",
    group: Group::Adapters,
    what: "Trains low-rank adapters; the base gets no gradients and no optimizer states.",
    needs: "A network whose attention layers have usual names; a GPU with bf16.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Faster backward: no weight gradients for the base.",
    quality: "Often enough for fine-tuning, not for pre-training; use a learning rate about ten times higher.",
    source: "arXiv 2106.09685; arXiv 2405.09673 (LoRA learns less and forgets less)",
    caveat: "Most activations remain.",
    code: "peft.get_peft_model(model, LoraConfig(...))",
    apply: |run| {
        let plain = !run.training.qat && run.training.low_precision == LowPrecision::None;
        if run.training.lora.is_some() || !plain || !has_bf16(run) {
            return None;
        }
        let targets = attention_layers(run)?;
        let changed = with(run, |changed| adapted(changed, targets));
        // Not every method and layout has adapters.
        (changed.check().len() <= run.check().len()).then_some(changed)
    },
};
