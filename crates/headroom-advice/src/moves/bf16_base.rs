//! Adapters on a frozen bf16 base.

use super::{Cost, Group, Move, Results, autocasts, has_bf16, with};
use headroom_scenario::Precision;

pub const MOVE: Move = Move {
    id: "bf16-base",
    title: "frozen base in bf16",
    group: Group::Adapters,
    what: "Loads the frozen base with two bytes per weight instead of four; autocast then needs no copies of it, and adapters stay in fp32.",
    needs: "LoRA on an fp32 base; a GPU with bf16.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: false,
    speed: "Faster: weights are not cast on every use.",
    quality: "The standard recipe: the base is not trained, and most checkpoints are published in bf16.",
    source: "the LoRA examples of Axolotl, LLaMA-Factory and Unsloth; peft's autocast_adapter_dtype",
    caveat: "",
    code: "AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)",
    apply: |run| {
        let wider = matches!(run.training.precision, Precision::Fp32 | Precision::AmpBf16);
        (wider && run.training.lora.is_some() && has_bf16(run) && autocasts(run)).then(|| {
            with(run, |changed| {
                changed.training.precision = Precision::AmpBf16OnBf16;
            })
        })
    },
};
