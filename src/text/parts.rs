//! The parts of the memory and of a step by name, and why each is there.

use headroom_core::estimate::{Category, Phase};

pub const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "Set-up",
        Phase::Forward => "Forward",
        Phase::Backward => "Backward",
        Phase::Optimizer => "Optimizer",
        Phase::Generation => "Generation",
        Phase::Reference => "Reference",
        Phase::Evaluation => "Evaluation",
        Phase::Resume => "Resuming",
    }
}

pub fn peak_in(phase: Phase) -> String {
    format!("Peak in {}", self::phase(phase).to_ascii_lowercase())
}

/// A category's name for classes and test hooks, its label, and why it is there.
pub const fn category(category: Category) -> (&'static str, &'static str, &'static str) {
    match category {
        Category::Parameters => (
            "parameters",
            "Parameters",
            "The weights themselves, in the precision they are stored in, from the first step to the last.",
        ),
        Category::Gradients => (
            "gradients",
            "Gradients",
            "One value for each trained weight, in the weight's precision. Backward makes them, layer by layer; the optimizer step uses them.",
        ),
        Category::OptimizerStates => (
            "optimizer-states",
            "Optimizer states",
            "What the optimizer remembers of each trained weight: Adam keeps two averages. Made in the first step, kept ever after.",
        ),
        Category::Ema => (
            "ema",
            "Moving average",
            "A second copy of the weights, averaged over the steps.",
        ),
        Category::Buffers => (
            "buffers",
            "Buffers",
            "Tensors of the model that are not trained, such as masks, position tables and running statistics.",
        ),
        Category::Inputs => ("inputs", "Inputs", "The batch itself, on the GPU."),
        Category::Activations => (
            "activations",
            "Activations",
            "What each operation of the forward pass keeps for its backward: the part that grows with batch and length.",
        ),
        Category::AutocastCopies => (
            "autocast-copies",
            "Autocast copies",
            "Low-precision copies of the weights that autocast makes once in each forward pass and keeps until its region ends.",
        ),
        Category::BackwardTemporaries => (
            "backward-temporaries",
            "Backward temporaries",
            "Gradients on their way from one operation to the one before it; each dies as soon as it has been used.",
        ),
        Category::OptimizerTemporaries => (
            "optimizer-temporaries",
            "Optimizer temporaries",
            "Tensors that exist only while the optimizer computes its update.",
        ),
        Category::Workspace => (
            "workspace",
            "Workspaces",
            "Scratch memory of matrix and convolution kernels (cuBLAS, cuDNN).",
        ),
        Category::Rounding => (
            "rounding",
            "Rounding",
            "The allocator hands out multiples of 512 bytes.",
        ),
    }
}

/// Memory on the device that no tensor holds.
pub const CACHED: (&str, &str, &str) = (
    "cached",
    "Held by the allocator",
    "Reserved and not allocated at the peak: free pieces of blocks that PyTorch's caching allocator keeps for later.",
);
pub const CONTEXT: (&str, &str, &str) = (
    "context",
    "CUDA context",
    "What the driver and libraries take before the first tensor: kernels, communication buffers. nvidia-smi counts it, PyTorch does not.",
);
