//! 8-bit AdamW (bitsandbytes).

use super::{Cost, Group, Move, Results, with};
use super::{adamw, nvidia};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "adamw-8bit",
    title: "8-bit AdamW (bitsandbytes)",
    group: Group::Optimizer,
    what: "Optimizer states in 8 bits, with one scale for each block of 256.",
    needs: "AdamW; an NVIDIA GPU.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: false,
    speed: "Slightly faster: less memory traffic.",
    quality: "Matches 32-bit states in the published runs; embeddings should keep 32-bit states.",
    source: "arXiv 2110.02861; bitsandbytes functional.py",
    caveat: "Small tensors (fewer than 4096 elements) keep fp32 states.",
    code: "bitsandbytes.optim.AdamW8bit(params)",
    apply: |run| {
        (adamw(run) && nvidia(run)).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::AdamW8bit;
            })
        })
    },
};
