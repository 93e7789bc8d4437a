//! Names and explanations of the parts of memory and the phases of a step.

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

pub const PHASE_PEAKS: &str = "The most that is allocated in each phase, within the GPU's memory.";

pub fn peak_in(phase: Phase) -> String {
    format!("Peak in {}", self::phase(phase).to_ascii_lowercase())
}

/// A category's id for classes and tests, its label, and its explanation.
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
            "One value per trained weight, in the weight's precision. Backward computes them layer by layer; the optimizer step uses them.",
        ),
        Category::OptimizerStates => (
            "optimizer-states",
            "Optimizer states",
            "The optimizer's state for each trained weight: Adam keeps two moving averages. Allocated in the first step and kept from then on.",
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
        Category::Sampler => (
            "sampler",
            "vLLM",
            "The weights and the key-value cache of vLLM, which samples completions on this GPU.",
        ),
        Category::Inputs => ("inputs", "Inputs", "The batch itself, on the GPU."),
        Category::Activations => (
            "activations",
            "Activations",
            "Tensors that the forward pass saves for backward: the part that grows with batch size and sequence length.",
        ),
        Category::AutocastCopies => (
            "autocast-copies",
            "Autocast copies",
            "Low-precision copies of the weights that autocast makes once per forward pass and caches until its context ends.",
        ),
        Category::BackwardTemporaries => (
            "backward-temporaries",
            "Backward temporaries",
            "Gradients of activations, passed from operation to operation in backward; each is freed as soon as it has been used.",
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

/// Device memory outside tensors.
pub const CACHED: (&str, &str, &str) = (
    "cached",
    "Held by the allocator",
    "Reserved but not allocated at the peak: free blocks that PyTorch's caching allocator keeps for reuse.",
);
pub const CONTEXT: (&str, &str, &str) = (
    "context",
    "CUDA context",
    "Memory of the driver and libraries: loaded kernels, communication buffers. nvidia-smi includes it, PyTorch does not.",
);
