//! Paged AdamW (bitsandbytes).

use super::{Cost, Group, Move, Results, with};
use super::{adamw, nvidia};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "paged-adamw",
    title: "paged AdamW (bitsandbytes)",
    group: Group::Optimizer,
    what: "Optimizer states are in managed memory, which the driver evicts to the host when the GPU is full.",
    needs: "AdamW; an NVIDIA GPU.",
    cost: Cost::Time,
    results: Results::Rounding,
    never_worse: false,
    speed: "As fast as AdamW while nothing is evicted; computed here as if all states were on the host.",
    quality: "Identical up to rounding.",
    source: "bitsandbytes optim/adamw.py; arXiv 2305.14314 section 3",
    caveat: "Does not work with FSDP2; the driver evicts pages late, so short peaks may still fail.",
    code: "bitsandbytes.optim.PagedAdamW(params)",
    apply: |run| {
        (adamw(run) && nvidia(run)).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::PagedAdamW;
            })
        })
    },
};
