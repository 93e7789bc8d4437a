//! Paged 8-bit AdamW (bitsandbytes).

use super::{Cost, Group, Move, with};
use super::{adamw, nvidia};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "paged-adamw-8bit",
    title: "paged 8-bit AdamW (bitsandbytes)",
    group: Group::Optimizer,
    what: "Optimizer states in 8 bits, in managed memory that the driver moves to the host when the GPU is full.",
    needs: "AdamW; an NVIDIA GPU.",
    cost: Cost::Results,
    never_worse: false,
    speed: "As 8-bit AdamW while the GPU has room; computed here as if all states were on the host.",
    quality: "As 8-bit AdamW.",
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
