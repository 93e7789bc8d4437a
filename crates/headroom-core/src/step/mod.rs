//! Training steps: what a training loop does around a network's forward function.
//!
//! As in PyTorch, a model is constructed, wrapped and then run: `construct`, `wrap`, and a step for each turn of a schedule.

mod batch;
mod clipping;
mod comm_hook;
mod ddp;
mod ema;
mod evaluation;
mod groups;
mod hooks;
mod optimizer;
mod pipeline;
pub(crate) mod plan;
mod redundancy;
mod result;
mod resume;
mod scaler;
mod setup;
mod task;
mod tensor_parallel;
mod training;
mod turns;
mod wrapper;

#[cfg(test)]
mod laws;

use crate::nets::Net;
use crate::tape::Machine;
use headroom_scenario::{Data, Training};
pub(crate) use plan::VllmShare;
pub(crate) use plan::{Detail, FEWEST_PASSES, MOST_PASSES};
pub use plan::{Evaluated, ModelMode, RunPlan};
pub use result::Run;
use training::TrainingLoop;
pub(crate) use turns::{MicroBatchPass, one_by_one};

/// Runs training steps of `net`. Equal layers are run once for all as far as they turn out to be equal.
pub fn run(
    net: &dyn Net,
    data: &Data,
    training: &Training,
    machine: Machine,
    plan: RunPlan,
) -> Run {
    let mut folding = plan.folding_for(training);
    loop {
        let run = run_folded(net, data, training, machine, RunPlan { folding, ..plan });
        match folding
            .less()
            .filter(|_| run.trace.broken && !run.trace.over_budget)
        {
            Some(less) => folding = less,
            None => return run,
        }
    }
}

/// The same with exactly the folding of the plan, even if the trace comes out broken.
pub(crate) fn run_folded(
    net: &dyn Net,
    data: &Data,
    training: &Training,
    machine: Machine,
    plan: RunPlan,
) -> Run {
    let task = task::around(net, data, training);
    let net = task.as_deref().unwrap_or(net);
    let mut training_loop = TrainingLoop::new(net, data, training, machine, plan);
    for step in 0..plan.steps {
        if !training_loop.exceeds_budget() && !training_loop.repeats(step) {
            training_loop.step(step);
        }
    }
    training_loop.finish()
}
