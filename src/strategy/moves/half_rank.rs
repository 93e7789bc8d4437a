//! Adapters of half the rank.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "half-rank",
    title: "adapters of half the rank",
    group: Group::AdapterRank,
    what: "Adapters, their gradients and their states are half as wide; what they keep of their inputs stays.",
    needs: "LoRA of rank 8 or more.",
    cost: Cost::Results,
    never_worse: true,
    speed: "A little faster.",
    quality: "On the tasks of the LoRA paper ranks of 4 and 8 are as good as 64; large changes of style or knowledge need more.",
    source: "arXiv 2106.09685 section 7.2; arXiv 2405.09673 (where LoRA learns less)",
    caveat: "With the usual alpha the scale alpha / rank doubles: keep their ratio.",
    code: "LoraConfig(r=rank, lora_alpha=2 * rank)",
    apply: |s| {
        let half = s.training.lora.as_ref()?.rank / 2;
        (half >= 4).then(|| {
            with(s, |it| {
                if let Some(lora) = &mut it.training.lora {
                    lora.rank = half;
                }
            })
        })
    },
};
