//! What memory is used for.

use serde::Serialize;

/// What a piece of memory is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    Parameters,
    Gradients,
    OptimizerStates,
    Buffers,
    /// The batch itself.
    Inputs,
    /// Kept by autograd for backward.
    #[default]
    Activations,
    /// Low-precision copies of weights that autocast keeps.
    AutocastCopies,
    /// Alive only while gradients flow.
    BackwardTemporaries,
    OptimizerTemporaries,
    /// Scratch memory of kernels.
    Workspace,
    /// A moving average of the weights.
    Ema,
    /// Blocks the allocator hands out larger than asked.
    Rounding,
}
