//! How a network shares its work with other ranks: over its sequences, its stages and its modules.

use super::RunPlan;
use super::plan::FEWEST_PASSES;
use crate::nets::{Context, Net, TensorParallel};
use crate::parallel::World;
use crate::parallel::schedule::Pipeline;
use headroom_scenario::{Attention, Checkpointing, Parallelism, Quantization, Schedule, Training};

/// The group that shares sequences, where the network's attention can reach over it.
pub(super) fn context(net: &dyn Net, training: &Training, world: &World) -> Context {
    let written_out = training.attention == Attention::Eager;
    if world.mesh.context < 2 || written_out || !net.supports_context_parallel() {
        return Context::ALONE;
    }
    Context {
        group: world.mesh.context.into(),
        attention: world.parallel.context,
    }
}

/// The pipeline of which this is one rank, where the network can be cut into stages and the schedule is modelled.
pub(super) fn pipeline(net: &dyn Net, training: &Training, plan: &RunPlan) -> Option<Pipeline> {
    /// The micro-batches per rank that show every state of a schedule that keeps no more in flight, and fewer where more would be
    /// too much work.
    const IN_TURNS: usize = 4;
    const FEWEST_IN_TURNS: usize = 2;
    const MOST: usize = 256;
    let world = &plan.world;
    let ranks = usize::try_from(world.mesh.stages).ok()?;
    let fully_sharded = matches!(
        world.parallel.strategy,
        Parallelism::Fsdp2 | Parallelism::Hsdp
    );
    let sharded = world.mesh.shard > 1 && !net.is_megatron_core();
    if ranks < 2 || sharded && !fully_sharded || !net.has_stages() {
        return None;
    }
    let schedule = world.parallel.schedule;
    let asked = usize::try_from(training.accumulation)
        .unwrap_or(MOST)
        .max(1);
    let most = match schedule {
        Schedule::GPipe | Schedule::LoopedBfs => MOST,
        _ if plan.passes <= FEWEST_PASSES => FEWEST_IN_TURNS * ranks,
        _ => IN_TURNS * ranks,
    };
    let pipeline = world.pipeline(asked.min(most).min(MOST))?;
    // Selective checkpoints are recomputed once only, which PyTorch says where a backward in two parts asks again.
    let whole = matches!(
        training.checkpointing,
        Checkpointing::None | Checkpointing::Layers
    );
    (whole || !pipeline.splits_backward()).then_some(pipeline)
}

/// The group over which the network's modules are split, where its library has a plan for it.
pub(super) fn tensor(net: &dyn Net, training: &Training, world: &World) -> TensorParallel {
    // Adapters and packed weights have other layouts than the matrices a plan names.
    let plain = training.lora.is_none() && training.quantization == Quantization::None;
    let splits = plain && world.mesh.tensor > 1;
    let divides_experts = world.mesh.expert > 1;
    match net.tensor_plan(divides_experts).filter(|_| splits) {
        None => TensorParallel::ALONE,
        Some(plan) => TensorParallel {
            plan,
            group: world.mesh.tensor.into(),
            sequence: world.parallel.sequence_parallel,
            loss: world.parallel.loss_parallel,
        },
    }
}
