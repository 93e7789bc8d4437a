//! A frozen base in bf16 under adapters.

use super::{Cost, Group, Move, autocasts, has_bf16, with};
use headroom_scenario::Precision;

pub const MOVE: Move = Move {
    id: "bf16-base",
    title: "frozen base in bf16",
    group: Group::Adapters,
    what: "Loads the frozen base in two bytes per weight instead of four; autocast then needs no copies of it, and adapters stay in fp32.",
    needs: "LoRA over an fp32 base; a GPU with bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Faster: weights are read once, not cast first.",
    quality: "The usual recipe: the base is not trained, and most checkpoints are published in bf16.",
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
