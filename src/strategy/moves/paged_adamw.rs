//! Paged AdamW (bitsandbytes).

use super::{Cost, Group, Move, with};
use super::{adamw, nvidia};
use crate::scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "paged-adamw",
    title: "paged AdamW (bitsandbytes)",
    group: Group::Optimizer,
    what: "States live in managed memory, which the driver moves to the host while the card is full.",
    needs: "AdamW; an NVIDIA card.",
    cost: Cost::Time,
    never_worse: false,
    speed: "As fast as AdamW while the card has room and nothing is moved; counted here as if all states were on the host.",
    quality: "Equal up to rounding.",
    source: "bitsandbytes optim/adamw.py; arXiv 2305.14314 section 3",
    caveat: "With FSDP2 it does not work; the driver moves pages late, so short peaks may still fail.",
    code: "bitsandbytes.optim.PagedAdamW(params)",
    apply: |s| {
        (adamw(s) && nvidia(s)).then(|| with(s, |it| it.training.optimizer = Optimizer::PagedAdamW))
    },
};
