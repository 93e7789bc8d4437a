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
mod plan;
mod redundancy;
mod resume;
mod scaler;
mod task;
mod tensor_parallel;
mod training;
mod turns;
mod wrapper;

#[cfg(test)]
mod laws;

use crate::nets::Net;
use crate::tape::{Machine, Trace};
use headroom_scenario::{Data, Training};
pub use plan::{Detail, FEWEST_PASSES, MOST_PASSES, ModelMode, RunPlan, foldable};
use training::TrainingLoop;
pub use turns::{Turn, one_by_one};

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    pub trace: Trace,
    pub parameters: u64,
    pub trainable: u64,
    /// Bytes of the optimizer's states and of what else it keeps in the host's memory.
    pub host_states: u64,
    /// Bytes of the host's memory that a wrapper keeps on each rank in pages that stay in place.
    pub pinned: u64,
    /// Bytes of the weights, and of those that are trained.
    pub bytes: u64,
    pub trainable_bytes: u64,
    /// Over how many GPUs the matrices are split: 1 where the network has no plan for that.
    pub tensor_parallel: u64,
    /// Over how many GPUs sequences are split: 1 where the network's attention does not reach over them.
    pub context_parallel: u64,
    /// Over how many GPUs the layers are split: 1 where the network's layers cannot be, or not in that order.
    pub pipeline_parallel: u32,
    /// Whether equal layers are all that its stages are cut from, of whatever one of them does.
    pub like_layers: bool,
    /// Over how many GPUs the experts of a layer are split: 1 where it has none, or not so.
    pub expert_parallel: u64,
}

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
            .filter(|_| run.trace.broken && !run.trace.spent)
        {
            Some(less) => folding = less,
            None => return run,
        }
    }
}

/// The same with exactly the folding of the plan, whatever comes of it.
pub fn run_folded(
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
