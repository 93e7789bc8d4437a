//! Rules of PyTorch that changed between its releases.

/// What a version of PyTorch does; the default is the newest release's. The catalogue's table of stacks
/// (`catalog/stacks.yaml`) says when each rule changed and where that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub struct Torch {
    /// Softmax saves its input, not its result alone (before 1.11).
    pub softmax_keeps_input: bool,
    /// `hardtanh_` saves its result, not a copy of its input (before 1.11).
    pub hardtanh_keeps_result: bool,
    /// cuBLAS's workspace stays allocated between calls (before 2.5).
    pub keeps_cublas_workspace: bool,
    /// `zero_grad()` writes zeros instead of letting gradients go (before 2.0).
    pub zeroes_gradients: bool,
    pub adam: AdamStep,
}

/// How AdamW steps by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdamStep {
    /// Tensor by tensor (before 2.0).
    Loop,
    /// With `foreach`, allocating roots and denominators (2.0).
    TwoLists,
    /// With `foreach`, denominators computed in place of the roots.
    #[default]
    OneList,
}
