//! AdamW on the host.

use super::adamw;
use super::{Cost, Group, Move, with};
use crate::scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "offload-optimizer",
    title: "AdamW on the host",
    group: Group::Optimizer,
    what: "States and the step are on the processor; gradients go there and weights come back.",
    needs: "AdamW on one GPU.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Slow: the step is bound by the link and by the processor.",
    quality: "Equal up to rounding.",
    source: "torchao optim/cpu_offload.py (CPUOffloadOptimizer)",
    caveat: "Host memory needs eight bytes for each trained parameter; learning-rate schedules must know the wrapper.",
    code: "torchao.optim.CPUOffloadOptimizer(params, torch.optim.AdamW)",
    apply: |s| {
        (adamw(s) && s.hardware.gpus == 1)
            .then(|| with(s, |it| it.training.optimizer = Optimizer::AdamWOffload))
    },
};
