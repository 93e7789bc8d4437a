//! A fused head and loss without logits.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{LmHead, Objective};

pub const MOVE: Move = Move {
    id: "fused-head",
    title: "TRL's fused head",
    group: Group::Loss,
    what: "Projects labelled tokens tile by tile and keeps no logits.",
    needs: "A loss that computes all logits; TRL 1.7 or later.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: false,
    speed: "The output projection runs once more in backward.",
    quality: "Identical up to rounding.",
    source: "trl/trainer/utils.py (add_fused_lm_head), trl/kernels/chunked_logprob.py",
    caveat: "",
    code: "pip install \"trl>=1.7\"",
    apply: |run| {
        let task = &run.training.task;
        let known = matches!(
            task.objective,
            Objective::Dpo | Objective::Kto | Objective::Grpo | Objective::Rloo
        );
        let all_logits = matches!(
            task.head,
            LmHead::Logits | LmHead::LogitsByRow | LmHead::LogSoftmax
        );
        (known && all_logits)
            .then(|| with(run, |changed| changed.training.task.head = LmHead::Fused))
    },
};
