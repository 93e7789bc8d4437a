//! Fused AdamW.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "fused-adamw",
    title: "fused AdamW",
    group: Group::Optimizer,
    what: "One kernel for the whole update, without the parameter-sized temporaries of the foreach implementation.",
    needs: "AdamW with another implementation.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: false,
    speed: "Faster: 7 passes over memory instead of 20.",
    quality: "Identical up to rounding.",
    source: "torch/optim/adam.py; recorded steps of torch 2.15: 4.1 x parameters at the peak instead of 5.0",
    caveat: "",
    code: "torch.optim.AdamW(params, lr, fused=True)",
    apply: |run| {
        let other = matches!(
            run.training.optimizer,
            Optimizer::AdamW | Optimizer::AdamWTwoLists | Optimizer::AdamWLoop
        );
        other.then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::AdamWFused;
            })
        })
    },
};
