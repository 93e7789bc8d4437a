//! No dropout on adapter inputs.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "no-adapter-dropout",
    title: "no dropout on adapter inputs",
    group: Group::AdapterDropout,
    what: "Adapted layers save neither a mask nor a dropped-out copy of their input.",
    needs: "LoRA with dropout.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster: two fewer kernels per adapted layer.",
    quality: "Less regularization; most recipes use none for large models.",
    source: "peft tuners/lora/layer.py; arXiv 2305.14314 section 4 (0 for 33B and 65B)",
    caveat: "",
    code: "LoraConfig(lora_dropout=0.0)",
    apply: |run| {
        let drops = run
            .training
            .lora
            .as_ref()
            .is_some_and(|lora| lora.dropout > 0.0);
        drops.then(|| {
            with(run, |changed| {
                if let Some(lora) = &mut changed.training.lora {
                    lora.dropout = 0.0;
                }
            })
        })
    },
};
