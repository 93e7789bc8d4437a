//! Activation checkpointing, whole or selective, and offload of activations.

use super::{Cost, Group, Move, Results, copies, with};
use headroom_scenario::{AdapterMethod, Checkpointing, Scenario};

/// Common to all of these.
const CHECKPOINTING: Move = Move {
    id: "",
    title: "",
    group: Group::Checkpointing,
    what: "",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "",
    quality: "Identical: the random state is restored, so dropout drops the same elements.",
    source: "",
    caveat: "With a frozen base, re-entrant checkpointing stops all training if no input requires a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |_| None,
};

pub const LAYERS: Move = Move {
    id: "checkpointing",
    title: "checkpoint every layer",
    what: "Saves only the input of each layer and recomputes the layer during backward.",
    speed: "Each layer's forward pass runs twice: about a third more FLOPs.",
    source: "arXiv 1604.06174; torch.utils.checkpoint",
    apply: |run| layers(run, 1),
    ..CHECKPOINTING
};

pub const EVERY_SECOND_LAYER: Move = Move {
    id: "checkpoint-half",
    title: "checkpoint every second layer",
    what: "Checkpoints one layer out of two.",
    speed: "About a sixth more FLOPs.",
    source: "arXiv 1604.06174; torchtitan activation_checkpoint.selective_ac_option",
    apply: |run| layers(run, 2),
    ..CHECKPOINTING
};

pub const KEEP_ATTENTION: Move = Move {
    id: "keep-attention",
    title: "selective checkpointing: keep attention",
    what: "Recomputes everything in a layer except attention.",
    speed: "Slightly faster than checkpointing whole layers, most for long sequences.",
    source: "torch.utils.checkpoint.create_selective_checkpoint_contexts",
    apply: |run| selective(run, Checkpointing::KeepAttention),
    ..CHECKPOINTING
};

pub const KEEP_MATMULS: Move = Move {
    id: "keep-matmuls",
    title: "selective checkpointing: keep matrix products and attention",
    what: "Recomputes only what is cheap: norms, activations, element-wise kernels.",
    speed: "Only memory-bound kernels run twice.",
    source: "https://pytorch.org/blog/activation-checkpointing-techniques/; torch.utils.checkpoint.create_selective_checkpoint_contexts",
    apply: |run| selective(run, Checkpointing::KeepMatmuls),
    ..CHECKPOINTING
};

pub const KEEP_HALF: Move = Move {
    id: "keep-half",
    title: "selective checkpointing: keep every second matrix product",
    what: "Keeps attention and every second matrix product, as torchtitan does.",
    speed: "Half of the matrix products and all memory-bound kernels run twice.",
    source: "torchtitan distributed/activation_checkpoint.py",
    apply: |run| selective(run, Checkpointing::KeepHalf),
    ..CHECKPOINTING
};

pub const OFFLOAD: Move = Move {
    id: "offload-activations",
    title: "offload activations to the host",
    what: "Every tensor saved for backward is copied to host memory and back.",
    speed: "Limited by PCIe bandwidth; slow if activations are large relative to the FLOPs.",
    quality: "Identical.",
    source: "torch.autograd.graph.save_on_cpu; torchtune enable_activation_offloading",
    caveat: "Host memory must hold all saved activations.",
    code: "torch.autograd.graph.save_on_cpu(pin_memory=True)",
    apply: |run| {
        (is_open(run) && !copies(run)).then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::Offload;
            })
        })
    },
    ..CHECKPOINTING
};

fn is_open(run: &Scenario) -> bool {
    run.training.checkpointing == Checkpointing::None && !run.training.use_cache
}

fn layers(run: &Scenario, every: u64) -> Option<Scenario> {
    let method = run.training.lora.as_ref().map(|lora| lora.method);
    let possible = is_open(run) && method != Some(AdapterMethod::Prefix);
    possible.then(|| checkpointed(run, Checkpointing::Layers, every))
}

fn selective(run: &Scenario, how: Checkpointing) -> Option<Scenario> {
    let possible = is_open(run) && !run.parallel.splits_backward();
    possible.then(|| checkpointed(run, how, 1))
}

fn checkpointed(run: &Scenario, how: Checkpointing, every: u64) -> Scenario {
    with(run, |changed| {
        changed.training.checkpointing = how;
        changed.training.checkpoint_every = every;
    })
}
