//! Paged 8-bit AdamW (bitsandbytes).

use super::{Cost, Group, Move, Results, with};
use super::{adamw, nvidia};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "paged-adamw-8bit",
    title: "paged 8-bit AdamW (bitsandbytes)",
    group: Group::Optimizer,
    what: "8-bit optimizer states in managed memory, which the driver evicts to the host when the GPU is full.",
    needs: "AdamW; an NVIDIA GPU.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: false,
    speed: "As fast as 8-bit AdamW while nothing is evicted; computed here as if all states were on the host.",
    quality: "The same as 8-bit AdamW.",
    source: "arXiv 2305.14314 section 3; bitsandbytes optim/adamw.py",
    caveat: "",
    code: "bitsandbytes.optim.PagedAdamW8bit(params)",
    apply: |run| {
        (adamw(run) && nvidia(run)).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::PagedAdamW8bit;
            })
        })
    },
};
