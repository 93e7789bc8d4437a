//! Sentences about changes, made from the figures of the runs before and after.

use super::edit::Edit;
use super::evaluate::Full;
use super::space;
use headroom_base::units::{Bytes, Seconds};
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{Category, Estimate, Phase};
use headroom_scenario::{
    Attention, Checkpointing, Compile, Kernels, LossKernel, Offload, Optimizer, Parallelism,
    Scenario,
};

/// Times that differ by less are said to be about the same.
pub const ABOUT: f64 = 0.03;

/// What the edits of one step are, in the run that they lead to.
pub fn title(edits: &[Edit], run: &Scenario) -> String {
    let all: Vec<String> = edits.iter().map(|edit| of(edit, run)).collect();
    all.join(", and ")
}

fn of(edit: &Edit, run: &Scenario) -> String {
    match edit {
        Edit::Strategy(sharding) => {
            let what = match sharding.strategy {
                Parallelism::None => "one process".into(),
                Parallelism::Ddp => "DDP: a whole model on each GPU".into(),
                Parallelism::DataParallel => "DataParallel".into(),
                Parallelism::Fsdp1 => "FSDP 1: shard weights, gradients and states".into(),
                Parallelism::Fsdp2 => "FSDP 2: shard weights, gradients and states".into(),
                Parallelism::Hsdp => {
                    "HSDP: shard within a machine, replicate between machines".into()
                }
                other => other.label().to_string(),
            };
            let fsdp = matches!(
                sharding.strategy,
                Parallelism::Fsdp1 | Parallelism::Fsdp2 | Parallelism::Hsdp
            );
            let gathered = if fsdp && !sharding.reshard {
                ", weights stay gathered until backward"
            } else {
                ""
            };
            format!("{what}{gathered}")
        }
        Edit::Tensor(1) => "no tensor parallelism".into(),
        Edit::Tensor(size) => format!("tensor parallelism over {size} GPUs"),
        Edit::Pipeline { stages: 1, .. } => "no pipeline".into(),
        Edit::Pipeline {
            stages, schedule, ..
        } => {
            format!("a pipeline of {stages} stages ({})", schedule.label())
        }
        Edit::Context(1) => "whole sequences on each GPU".into(),
        Edit::Context(size) => format!("each sequence over {size} GPUs (context parallelism)"),
        Edit::Expert(1) => "all experts on each GPU".into(),
        Edit::Expert(size) => format!("experts over {size} GPUs (expert parallelism)"),
        Edit::Host(Offload::None) => "nothing in host memory".into(),
        Edit::Host(what) => format!("keep {} in host memory", what.label()),
        Edit::MicroBatch(size) => format!(
            "micro-batch {size} × {} accumulated",
            run.training.accumulation
        ),
        Edit::Checkpointing(Checkpointing::None, _) => "no activation checkpointing".into(),
        Edit::Checkpointing(Checkpointing::Layers, 1) => "checkpoint every layer".into(),
        Edit::Checkpointing(Checkpointing::Layers, every) => {
            format!("checkpoint one layer of {every}")
        }
        Edit::Checkpointing(Checkpointing::Offload, _) => "keep activations in host memory".into(),
        Edit::Checkpointing(Checkpointing::KeepMatmuls, _) => {
            "selective checkpointing: keep matrix products and attention".into()
        }
        Edit::Checkpointing(Checkpointing::KeepHalf, _) => {
            "selective checkpointing: keep attention and every second matrix product".into()
        }
        Edit::Checkpointing(Checkpointing::KeepAttention, _) => {
            "selective checkpointing: keep attention".into()
        }
        Edit::Loss(kernel) => match kernel {
            LossKernel::Library => "the library's loss".into(),
            LossKernel::ChunkedLoss => "cross-entropy in chunks".into(),
            LossKernel::ChunkedHead => "logits and cross-entropy in chunks".into(),
            LossKernel::ChunkedCheckpoint => {
                "logits and cross-entropy in checkpointed chunks".into()
            }
            LossKernel::CutLinear => "cut cross-entropy".into(),
            LossKernel::LigerLinear => "fused linear cross-entropy (Liger)".into(),
            LossKernel::Liger => "Liger cross-entropy".into(),
        },
        Edit::Kernels(Kernels::Liger) => "Liger's norms, rotary embeddings and gated layers".into(),
        Edit::Kernels(kernels) => format!("kernels: {}", kernels.label()),
        Edit::Attention(Attention::Sdpa) => "fused attention (SDPA)".into(),
        Edit::Attention(attention) => attention.label().into(),
        Edit::Optimizer(Optimizer::AdamWFused) => "fused AdamW".into(),
        Edit::Optimizer(optimizer) => optimizer.label().into(),
        Edit::InBackward(true) => "step the optimizer inside backward".into(),
        Edit::InBackward(false) => "step the optimizer after backward".into(),
        Edit::Expandable => "expandable segments".into(),
        Edit::Compile(Compile::Nothing) => "no torch.compile".into(),
        Edit::Compile(what) => format!("torch.compile: {}", what.label()),
        Edit::BlockSwap(blocks) => format!("swap {blocks} blocks with host memory"),
        Edit::Move(change) => change.title.into(),
    }
}

/// A category in the middle of a sentence.
const fn name(category: Category) -> &'static str {
    match category {
        Category::Parameters => "weights",
        Category::Gradients => "gradients",
        Category::OptimizerStates => "optimizer states",
        Category::Buffers => "buffers",
        Category::Sampler => "vLLM",
        Category::Inputs => "batches",
        Category::Activations => "activations",
        Category::AutocastCopies => "autocast's copies of weights",
        Category::BackwardTemporaries => "temporaries of backward",
        Category::OptimizerTemporaries => "temporaries of the optimizer",
        Category::Workspace => "kernels' workspaces",
        Category::Ema => "averaged weights",
        Category::Rounding => "rounded bytes",
    }
}

/// Why a step is taken: what it does to memory and to time.
pub fn why(before: &Full, after: &Full) -> String {
    let memory = of_memory(before, after);
    let time = of_time(before, after);
    let host = of_host(before, after).map_or(String::new(), |host| format!("; {host}"));
    format!("{memory}; {time}{host}")
}

/// What it puts into host memory; less than a few hundred MiB is not worth a word.
fn of_host(before: &Full, after: &Full) -> Option<String> {
    const LITTLE: Bytes = Bytes::mib(512);
    let of = |full: &Full| full.estimate.host.total.expected;
    let more = of(after).saturating_sub(of(before));
    (more > LITTLE).then(|| format!("{more} more host memory on each machine"))
}

fn of_memory(before: &Full, after: &Full) -> String {
    let (old, new) = (before.device(), after.device());
    if before.estimate.growth > after.estimate.growth {
        return format!(
            "{} less are left on the GPU by the end of the run",
            before.estimate.growth - after.estimate.growth
        );
    }
    let change = old.get().abs_diff(new.get());
    if change as f64 <= 0.001 * old.max(new).get() as f64 {
        return "as much memory as before".into();
    }
    let direction = if new < old {
        format!("{} less", old - new)
    } else {
        format!("{} more", new - old)
    };
    let (from, to) = (&before.estimate, &after.estimate);
    let part = largest(from, to, new < old);
    // Less than a third is no reason.
    let part = part.filter(|(_, from, to)| from.get().abs_diff(to.get()) > change / 3);
    if from.phase != to.phase {
        return format!(
            "{direction}: the peak was {} in {}, and is {} in {}",
            from.allocated.expected,
            place(from.phase),
            to.allocated.expected,
            place(to.phase)
        );
    }
    let Some((what, from, to)) = part else {
        return format!(
            "{direction}: the allocator reserves {} instead of {}",
            to.reserved.expected, from.reserved.expected
        );
    };
    if to.get() < from.get() / 100 {
        // Gone from the peak, not necessarily from the run.
        return format!(
            "{direction}: the peak was {} with {from} of {}, and is {} without",
            before.estimate.allocated.expected,
            name(what),
            after.estimate.allocated.expected
        );
    }
    let layers = space::layers(&after.scenario).filter(|_| what == Category::Activations);
    let of = layers.map_or(String::new(), |layers| format!(" of {layers} layers"));
    format!(
        "{direction}: {}{of} are {from}, and {to} after it",
        name(what)
    )
}

/// A phase in the middle of a sentence.
const fn place(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "setup",
        Phase::Generation => "generation",
        Phase::Reference => "the reference's forward",
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Optimizer => "the optimizer step",
        Phase::Evaluation => "evaluation",
        Phase::Resume => "resuming",
    }
}

/// The category that fell (or rose) most between the peaks of two runs.
fn largest(before: &Estimate, after: &Estimate, falls: bool) -> Option<(Category, Bytes, Bytes)> {
    let of = |estimate: &Estimate, category: Category| {
        let mut parts = estimate.breakdown.iter();
        let part = parts.find(|part| part.what == category);
        part.map_or(Bytes::ZERO, |part| part.bytes)
    };
    let all = before.breakdown.iter().chain(&after.breakdown);
    let changes = all.map(|part| {
        let (from, to) = (of(before, part.what), of(after, part.what));
        (part.what, from, to)
    });
    let by = |(_, from, to): &(Category, Bytes, Bytes)| {
        if falls {
            from.saturating_sub(*to)
        } else {
            to.saturating_sub(*from)
        }
    };
    changes
        .max_by_key(by)
        .filter(|change| by(change) > Bytes::ZERO)
}

fn of_time(before: &Full, after: &Full) -> String {
    let (Some(old), Some(new)) = (&before.time, &after.time) else {
        return "the GPU's speed is unknown".into();
    };
    let (from, to) = (old.step.expected, new.step.expected);
    let speed = speed(from.get(), to.get());
    if speed == Speed::Alike {
        return "about as fast".into();
    }
    let part = part(old, new, to < from);
    let because = part.map_or(String::new(), |(name, by)| {
        let word = if to < from { "less" } else { "more" };
        format!(", {} {word} in {name}", Seconds::new(by))
    });
    format!("a step takes {to} instead of {from}{because}")
}

/// How two step times compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Faster,
    Alike,
    Slower,
}

pub fn speed(before: f64, after: f64) -> Speed {
    if after < before * (1.0 - ABOUT) {
        Speed::Faster
    } else if after > before * (1.0 + ABOUT) {
        Speed::Slower
    } else {
        Speed::Alike
    }
}

/// The part of a step that became shorter (or longer) by most, and by how much.
fn part(old: &StepTime, new: &StepTime, shorter: bool) -> Option<(&'static str, f64)> {
    let parts = [
        ("forward", old.forward, new.forward),
        ("backward", old.backward, new.backward),
        ("the optimizer", old.optimizer, new.optimizer),
        ("communication", old.communication, new.communication),
        ("the pipeline's bubble", old.bubble, new.bubble),
    ];
    let by = parts.map(|(name, old, new)| {
        let change = new.expected.get() - old.expected.get();
        (name, if shorter { -change } else { change })
    });
    let most = by.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most.1 > 0.0).then_some(most)
}
