//! No dropout on adapters' inputs.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "no-adapter-dropout",
    title: "no dropout on adapters' inputs",
    group: Group::AdapterDropout,
    what: "Adapted layers keep no mask and no dropped copy of their input.",
    needs: "LoRA with dropout.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: two kernels fewer for each adapted layer.",
    quality: "Less regularisation; most recipes use none for large models.",
    source: "peft tuners/lora/layer.py; arXiv 2305.14314 section 4 (0 for 33B and 65B)",
    caveat: "",
    code: "LoraConfig(lora_dropout=0.0)",
    apply: |s| {
        let drops = s.training.lora.as_ref().is_some_and(|it| it.dropout > 0.0);
        drops.then(|| {
            with(s, |it| {
                if let Some(lora) = &mut it.training.lora {
                    lora.dropout = 0.0;
                }
            })
        })
    },
};
