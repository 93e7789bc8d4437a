//! A network with its sizes worked out for a batch: what each layer is and which shapes flow through it.

use headroom_base::dtype::DType;

/// A network ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub input: Input,
    pub parts: Vec<PartPlan>,
    /// Tensors that belong to the loss.
    pub at_loss: Vec<ExtraTensor>,
    pub loss: Loss,
    /// The shape of what the last part leaves.
    pub output: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub tokens: bool,
    pub shape: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartPlan {
    pub name: String,
    pub repeat: u64,
    pub passes: u64,
    /// Passes before the ones that carry gradients.
    pub without_gradient: u64,
    pub frozen: bool,
    /// A checkpointed segment is a whole pass.
    pub whole_passes: bool,
    pub ops: Vec<Op>,
    pub tensors: Vec<ExtraTensor>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Embedding { rows: u64, width: u64 },
    Linear { out: u64, bias: bool },
    Norm(Norm),
    Attention(Attention),
    Mlp(Mlp),
    Conv(Conv),
    Activation(&'static str),
    Dropout(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    None,
    Layer,
    Rms,
    Batch,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    pub heads: u64,
    pub kv: u64,
    pub causal: bool,
    pub bias: bool,
    pub norm: Norm,
    pub residual: bool,
    pub dropout: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    pub width: u64,
    pub gated: bool,
    pub activation: &'static str,
    pub bias: bool,
    pub norm: Norm,
    pub residual: bool,
    pub dropout: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    pub out: u64,
    pub kernel: u64,
    pub stride: u64,
    pub groups: u64,
    pub bias: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    CrossEntropy,
    Mse,
    Mean,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraTensor {
    pub name: String,
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub lifetime: Lifetime,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// From forward to backward, where a gradient comes back.
    Saved,
    Forward,
    Backward,
    Persistent,
}
