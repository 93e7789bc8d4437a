//! AdamW on the CPU.

use super::adamw;
use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "offload-optimizer",
    title: "AdamW on the CPU",
    group: Group::Optimizer,
    what: "Optimizer states and the step live on the CPU; gradients are copied there and weights copied back.",
    needs: "AdamW on one GPU, without gradient clipping or a GradScaler.",
    cost: Cost::Time,
    results: Results::Rounding,
    never_worse: false,
    speed: "Slow: the step is limited by PCIe and the CPU.",
    quality: "Identical up to rounding.",
    source: "torchao optim/cpu_offload.py (CPUOffloadOptimizer)",
    caveat: "Needs eight bytes of host memory per trained parameter; learning-rate schedulers must support the wrapper.",
    code: "torchao.optim.CPUOffloadOptimizer(params, torch.optim.AdamW)",
    apply: |run| {
        // Gradients are copied to the host during backward: clipping or unscaling afterwards would change other copies.
        let changed_later = run.training.clip || run.training.precision.scales_gradients();
        let alone = run.hardware.gpus == 1 && !run.training.optimizer_in_backward;
        (adamw(run) && alone && !changed_later).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::AdamWOffload;
            })
        })
    },
};
