//! AdamW on the CPU.

use super::adamw;
use super::{Cost, Group, Move, with};
use headroom_scenario::{Optimizer, Precision};

pub const MOVE: Move = Move {
    id: "offload-optimizer",
    title: "AdamW on the CPU",
    group: Group::Optimizer,
    what: "Optimizer states and the step live on the CPU; gradients are copied there and weights copied back.",
    needs: "AdamW on one GPU, without clipping or a scaler of gradients.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Slow: the step is limited by the link and the CPU.",
    quality: "Identical up to rounding.",
    source: "torchao optim/cpu_offload.py (CPUOffloadOptimizer)",
    caveat: "Needs eight bytes of host memory for each trained parameter; learning-rate schedulers have to know the wrapper.",
    code: "torchao.optim.CPUOffloadOptimizer(params, torch.optim.AdamW)",
    apply: |run| {
        // Gradients leave for the host while backward goes on: what is clipped or unscaled after it are other copies.
        let changed_later = run.training.clip || run.training.precision == Precision::AmpFp16;
        let alone = run.hardware.gpus == 1 && !run.training.optimizer_in_backward;
        (adamw(run) && alone && !changed_later).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::AdamWOffload;
            })
        })
    },
};
