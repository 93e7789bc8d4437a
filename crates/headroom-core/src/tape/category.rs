//! What memory is used for.

use serde::Serialize;

/// What a storage is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Parameters of the model, trained or frozen.
    Parameters,
    /// The parameters' gradients (`.grad`).
    Gradients,
    /// What the optimizer keeps for each parameter (`optimizer.state`).
    OptimizerStates,
    /// Buffers of the model's modules.
    Buffers,
    /// What samples completions beside training: vLLM's weights and its cache.
    Sampler,
    /// The batch itself.
    Inputs,
    /// Saved by autograd for backward.
    #[default]
    Activations,
    /// Autocast's cache of cast weights.
    AutocastCopies,
    /// Alive only during backward.
    BackwardTemporaries,
    /// Alive only during the optimizer update.
    OptimizerTemporaries,
    /// Scratch memory of kernels.
    Workspace,
    /// A moving average of the weights.
    Ema,
    /// Bytes that the allocator hands out beyond the request.
    Rounding,
}
