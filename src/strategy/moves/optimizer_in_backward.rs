//! Step each parameter inside backward.

use super::{Cost, Group, Move, with};
use crate::scenario::{Optimizer, Parallelism, Precision};

pub const MOVE: Move = Move {
    id: "optimizer-in-backward",
    title: "step each parameter inside backward",
    group: Group::Stepping,
    what: "A parameter is stepped as soon as its gradient is complete, and the gradient is let go: never are all gradients there.",
    needs: "No accumulation, no clipping of the whole norm, no fp16 scaler; one process or DDP.",
    cost: Cost::Free,
    never_worse: false,
    speed: "About as fast.",
    quality: "Equal without clipping.",
    source: "https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html",
    caveat: "Gradients cannot be inspected, clipped by their whole norm or accumulated; checkpoints must save one optimizer for each parameter.",
    code: "param.register_post_accumulate_grad_hook(step_and_free)",
    apply: |s| {
        let training = &s.training;
        let whole = matches!(s.parallel.strategy, Parallelism::None | Parallelism::Ddp);
        let possible = whole
            && !training.optimizer_in_backward
            && training.accumulation == 1
            && !training.clip
            && training.precision != Precision::AmpFp16
            && training.optimizer != Optimizer::AdamWOffloadGradients;
        possible.then(|| with(s, |it| it.training.optimizer_in_backward = true))
    },
};
