//! Adapters of half the rank.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "half-rank",
    title: "adapters of half the rank",
    group: Group::AdapterRank,
    what: "Adapters, their gradients and their optimizer states halve; the inputs saved for backward do not change.",
    needs: "LoRA of rank 8 or more.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Slightly faster.",
    quality: "On the LoRA paper's tasks, ranks 4 and 8 do as well as 64; large changes of style or knowledge need more.",
    source: "arXiv 2106.09685 section 7.2; arXiv 2405.09673 (where LoRA learns less)",
    caveat: "With a fixed alpha the scale alpha / rank doubles: keep the ratio.",
    code: "LoraConfig(r=rank, lora_alpha=2 * rank)",
    apply: |run| {
        let half = run.training.lora.as_ref()?.rank / 2;
        (half >= 4).then(|| {
            with(run, |changed| {
                if let Some(lora) = &mut changed.training.lora {
                    lora.rank = half;
                }
            })
        })
    },
};
