//! Step the optimizer inside backward.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{CommHook, Optimizer, Parallelism};

pub const MOVE: Move = Move {
    id: "optimizer-in-backward",
    title: "step the optimizer inside backward",
    group: Group::Stepping,
    what: "Each parameter is updated as soon as its gradient is complete, and the gradient is freed, so all gradients never exist at once.",
    needs: "No accumulation, no clipping by global norm, no fp16 scaler; one process or DDP without a communication hook.",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: false,
    speed: "About as fast.",
    quality: "Identical without clipping.",
    source: "https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html",
    caveat: "Gradients cannot be inspected, clipped by their global norm or accumulated; checkpoints must save one optimizer per parameter.",
    code: "param.register_post_accumulate_grad_hook(step_and_free)",
    apply: |run| {
        let training = &run.training;
        let whole = matches!(run.parallel.strategy, Parallelism::None | Parallelism::Ddp);
        let possible = whole
            && run.parallel.comm_hook == CommHook::None
            && !training.optimizer_in_backward
            && !training.optimizer.consumes_gradients()
            && training.accumulation == 1
            && !training.clip
            && !training.precision.scales_gradients()
            && !matches!(
                training.optimizer,
                Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients
            );
        possible.then(|| with(run, |changed| changed.training.optimizer_in_backward = true))
    },
};
