//! The ambient state of operations.

use super::{DType, Scope, Stream};

/// What PyTorch keeps per thread (`at::ThreadLocalState`) and modules keep as `training`, with the place on the tape that
/// new memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of PyTorch's own, set by itself"
)]
pub struct Mode {
    /// `torch.is_grad_enabled()`.
    pub grad: bool,
    /// The dtype of the `torch.autocast` region; `None` outside one and where it is disabled.
    pub autocast: Option<DType>,
    /// `not module.training`.
    pub evaluating: bool,
    /// Memory exists before the first step.
    pub setup: bool,
    /// Parameters are created without memory (`torch.device("meta")`).
    pub meta: bool,
    /// The stream that new memory belongs to.
    pub stream: Stream,
    /// The declaration pass: operations only compute shapes, and only what constructors create takes effect.
    pub declaring: bool,
    /// The module that new memory belongs to.
    pub scope: Scope,
}

impl Default for Mode {
    fn default() -> Self {
        Self {
            grad: true,
            autocast: None,
            evaluating: false,
            setup: false,
            meta: false,
            stream: Stream::COMPUTE,
            declaring: false,
            scope: Scope::default(),
        }
    }
}

impl Mode {
    pub const fn no_grad(self) -> Self {
        Self {
            grad: false,
            ..self
        }
    }

    pub const fn with_autocast(self, autocast: Option<DType>) -> Self {
        Self { autocast, ..self }
    }

    pub const fn in_setup(self) -> Self {
        Self {
            setup: true,
            ..self
        }
    }
}
