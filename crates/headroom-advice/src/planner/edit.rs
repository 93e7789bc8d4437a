//! Edits: one value on one axis of the space of runs.

use std::hash::{Hash, Hasher};

use super::results::Results;
use crate::moves::can_swap;
use crate::moves::conditions::{nvidia, own_loss, scales_logits, writes_text};
use crate::moves::{Group, Move};
use headroom_catalog::Os;
use headroom_scenario::{
    AdapterMethod, Attention, Checkpointing, Compile, Kernels, LossKernel, Offload, Optimizer,
    Parallelism, Scenario, Schedule,
};

/// What an edit sets, in the order of application: first how GPUs share the work, last the allocator. A plan has at most one
/// edit on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    Strategy,
    Tensor,
    Pipeline,
    Context,
    Expert,
    Host,
    MicroBatch,
    Of(Group),
    Compile,
}

/// A value on an axis.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// How data-parallel GPUs share weights, gradients and states.
    Strategy(Sharding),
    Tensor(u32),
    Pipeline {
        stages: u32,
        schedule: Schedule,
        virtual_stages: u32,
    },
    Context(u32),
    Expert(u32),
    /// What sharded runs keep in host memory.
    Host(Offload),
    /// The accumulation follows, so that an update sees as many samples as before.
    MicroBatch(u64),
    Checkpointing(Checkpointing, u64),
    Loss(LossKernel),
    Kernels(Kernels),
    Attention(Attention),
    Optimizer(Optimizer),
    InBackward(bool),
    Expandable,
    Compile(Compile),
    /// So many blocks of the network wait in host memory.
    BlockSwap(u64),
    /// A change that is no axis of its own.
    Move(&'static Move),
}

/// A strategy with the switches that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    pub strategy: Parallelism,
    /// FSDP gathers weights again for backward.
    pub reshard: bool,
    /// Gradients are reduced after each micro-batch, not kept whole until the last.
    pub sync_each: bool,
}

impl PartialEq for Edit {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Move(a), Self::Move(b)) => a.id == b.id,
            _ => self.key() == other.key(),
        }
    }
}

impl Eq for Edit {}

impl Hash for Edit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
        if let Self::Move(change) = self {
            change.id.hash(state);
        }
    }
}

impl Edit {
    /// Its kind and its numbers.
    fn key(&self) -> (u8, u64, u64, u64) {
        match *self {
            Self::Strategy(sharding) => {
                let switches = u64::from(sharding.reshard) * 2 + u64::from(sharding.sync_each);
                (0, sharding.strategy as u64, switches, 0)
            }
            Self::Tensor(size) => (1, size.into(), 0, 0),
            Self::Pipeline {
                stages,
                schedule,
                virtual_stages,
            } => (2, stages.into(), schedule as u64, virtual_stages.into()),
            Self::Context(size) => (3, size.into(), 0, 0),
            Self::Expert(size) => (4, size.into(), 0, 0),
            Self::Host(what) => (5, what as u64, 0, 0),
            Self::MicroBatch(size) => (6, size, 0, 0),
            Self::Checkpointing(how, every) => (7, how as u64, every, 0),
            Self::Loss(kernel) => (8, kernel as u64, 0, 0),
            Self::Kernels(kernels) => (9, kernels as u64, 0, 0),
            Self::Attention(attention) => (10, attention as u64, 0, 0),
            Self::Optimizer(optimizer) => (11, optimizer as u64, 0, 0),
            Self::InBackward(on) => (12, on.into(), 0, 0),
            Self::Expandable => (13, 0, 0, 0),
            Self::Compile(what) => (14, what as u64, 0, 0),
            Self::BlockSwap(blocks) => (15, blocks, 0, 0),
            Self::Move(_) => (16, 0, 0, 0),
        }
    }

    pub fn axis(&self) -> Axis {
        match self {
            Self::Strategy(_) => Axis::Strategy,
            Self::Tensor(_) => Axis::Tensor,
            Self::Pipeline { .. } => Axis::Pipeline,
            Self::Context(_) => Axis::Context,
            Self::Expert(_) => Axis::Expert,
            Self::Host(_) => Axis::Host,
            Self::MicroBatch(_) => Axis::MicroBatch,
            Self::Checkpointing(..) => Axis::Of(Group::Checkpointing),
            Self::Loss(_) => Axis::Of(Group::Loss),
            Self::Kernels(_) => Axis::Of(Group::Kernels),
            Self::Attention(_) => Axis::Of(Group::Attention),
            Self::Optimizer(_) => Axis::Of(Group::Optimizer),
            Self::InBackward(_) => Axis::Of(Group::Stepping),
            Self::Expandable => Axis::Of(Group::Allocator),
            Self::Compile(_) => Axis::Compile,
            Self::BlockSwap(_) => Axis::Of(Group::Swapping),
            Self::Move(change) => Axis::Of(change.group),
        }
    }

    /// Whether it changes the optimizer update only, not the passes.
    pub fn is_of_update(&self) -> bool {
        match self {
            Self::Optimizer(_) | Self::Expandable => true,
            Self::Move(change) => change.group.affects_optimizer_only(),
            _ => false,
        }
    }

    /// Whether it changes the passes only, not the optimizer update.
    pub fn is_of_passes(&self) -> bool {
        match self {
            Self::MicroBatch(_)
            | Self::Checkpointing(..)
            | Self::Loss(_)
            | Self::Kernels(_)
            | Self::Attention(_)
            | Self::Compile(_)
            | Self::Expandable => true,
            Self::Move(change) => matches!(
                change.group,
                Group::Outputs | Group::Cache | Group::Evaluation | Group::Zeroing
            ),
            _ => false,
        }
    }

    /// A short name in data.
    pub fn id(&self) -> String {
        match self {
            Self::Strategy(sharding) => sharding.strategy.id().into(),
            Self::Tensor(size) => format!("tp-{size}"),
            Self::Pipeline { stages, .. } => format!("pp-{stages}"),
            Self::Context(size) => format!("cp-{size}"),
            Self::Expert(size) => format!("ep-{size}"),
            Self::Host(what) => format!("offload-{}", what.id()),
            Self::MicroBatch(_) => "micro-batch".into(),
            Self::Checkpointing(Checkpointing::Layers, every @ 2..) => {
                format!("checkpointing-every-{every}")
            }
            Self::Checkpointing(how, _) => format!("checkpointing-{}", how.id()),
            Self::Loss(kernel) => format!("loss-{}", kernel.id()),
            Self::Kernels(kernels) => format!("kernels-{}", kernels.id()),
            Self::Attention(attention) => format!("attention-{}", attention.id()),
            Self::Optimizer(optimizer) => optimizer.id().into(),
            Self::InBackward(true) => "optimizer-in-backward".into(),
            Self::InBackward(false) => "optimizer-after-backward".into(),
            Self::Expandable => "expandable-segments".into(),
            Self::Compile(what) => format!("compile-{}", what.id()),
            Self::BlockSwap(_) => "block-swap".into(),
            Self::Move(change) => change.id.into(),
        }
    }

    /// What it does to the results, if small batches train as large ones do.
    pub fn results(&self) -> Results {
        match self {
            Self::Checkpointing(..)
            | Self::InBackward(_)
            | Self::Expandable
            | Self::BlockSwap(_) => Results::Identical,
            Self::Optimizer(
                Optimizer::AdamW8bit
                | Optimizer::PagedAdamW8bit
                | Optimizer::AdamW8bitAo
                | Optimizer::PagedAdEmaMix8bit
                | Optimizer::PagedLion8bit,
            ) => Results::SameBatch,
            Self::Move(change) => change.results,
            _ => Results::Rounding,
        }
    }

    /// The run with this value; `None` if it is impossible there, or nothing changes. The accumulation is left as it is.
    pub fn on(&self, run: &Scenario) -> Option<Scenario> {
        let mut changed = run.clone();
        let Scenario {
            training, parallel, ..
        } = &mut changed;
        match *self {
            Self::Strategy(sharding) => {
                parallel.strategy = sharding.strategy;
                parallel.reshard = sharding.reshard;
                parallel.sync_each = sharding.sync_each;
                let sharded = matches!(
                    sharding.strategy,
                    Parallelism::Fsdp1 | Parallelism::Fsdp2 | Parallelism::Hsdp
                );
                // FSDP shards tensors of floating types only.
                let quantized = training.quantization != headroom_scenario::Quantization::None;
                parallel.shard_quantized |= sharded && quantized;
            }
            Self::Tensor(size) => {
                parallel.tp = size;
                parallel.sequence_parallel = size > 1;
                parallel.loss_parallel = size > 1;
            }
            Self::Pipeline {
                stages,
                schedule,
                virtual_stages,
            } => {
                parallel.pp = stages;
                parallel.schedule = schedule;
                parallel.virtual_stages = virtual_stages;
            }
            Self::Context(size) => parallel.cp = size,
            Self::Expert(size) => parallel.ep = size,
            Self::Host(what) => parallel.offload = what,
            Self::MicroBatch(size) => {
                // The accumulation may change although the size does not.
                changed.data.micro_batch = size;
                return Some(changed);
            }
            Self::Checkpointing(how, every) => {
                let prefix = training
                    .lora
                    .as_ref()
                    .is_some_and(|lora| lora.method == AdapterMethod::Prefix);
                let selective = !matches!(how, Checkpointing::None | Checkpointing::Layers);
                let impossible = how != Checkpointing::None && training.use_cache
                    || how == Checkpointing::Layers && prefix
                    || selective && parallel.splits_backward();
                if impossible {
                    return None;
                }
                training.checkpointing = how;
                training.checkpoint_every = every;
            }
            Self::Loss(kernel) => {
                let whole = !matches!(kernel, LossKernel::ChunkedLoss | LossKernel::ChunkedHead);
                let possible = writes_text(run) && own_loss(run) && (whole || !scales_logits(run));
                if !possible || divides_a_model(run) {
                    return None;
                }
                training.loss = kernel;
            }
            Self::Kernels(kernels) => {
                if divides_a_model(run) || training.compile != Compile::Nothing {
                    return None;
                }
                training.kernels = kernels;
            }
            Self::Attention(attention) => training.attention = attention,
            Self::Optimizer(optimizer) => {
                if !steps(run, optimizer) {
                    return None;
                }
                training.optimizer = optimizer;
            }
            Self::InBackward(on) => {
                let whole = matches!(parallel.strategy, Parallelism::None | Parallelism::Ddp);
                let offloads = matches!(
                    training.optimizer,
                    Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients
                );
                if on && (!whole || offloads) {
                    return None;
                }
                training.optimizer_in_backward = on;
            }
            Self::Expandable => {
                if changed.hardware.os != Os::Linux {
                    return None;
                }
                changed.runtime.expandable_segments = true;
            }
            Self::Compile(what) => training.compile = what,
            Self::BlockSwap(blocks) => {
                if !can_swap(run) {
                    return None;
                }
                training.block_swap = blocks;
            }
            Self::Move(change) => return change.on(run),
        }
        (changed != *run).then_some(changed)
    }
}

/// Whether one copy of the model is divided among GPUs: other losses and kernels are not written for that.
fn divides_a_model(run: &Scenario) -> bool {
    let layout = &run.parallel;
    layout.tp.max(layout.pp).max(layout.cp) > 1
}

/// Whether an implementation of AdamW can step this run's parameters.
fn steps(run: &Scenario, optimizer: Optimizer) -> bool {
    use Parallelism::{Fsdp1, Fsdp2, Hsdp, Zero0, Zero1, Zero2, Zero3};
    let several = run.hardware.gpus > 1;
    let strategy = run.parallel.strategy;
    let clips = run.training.clip || run.training.precision.scales_gradients();
    match optimizer {
        // DTensors have torchao's; DeepSpeed partitions its own.
        Optimizer::AdamW8bitAo => several && matches!(strategy, Fsdp2 | Hsdp),
        Optimizer::AdamWOffload => !several && !clips && !run.training.optimizer_in_backward,
        _ if optimizer.is_of_bitsandbytes() => {
            let sharded = matches!(
                strategy,
                Fsdp1 | Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3
            );
            nvidia(run) && !(several && sharded)
        }
        _ => true,
    }
}
