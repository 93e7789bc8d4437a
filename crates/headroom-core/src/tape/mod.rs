//! The tape: symbolic tensors whose handles live and die like Python references, and an autograd engine
//! that saves, frees and accumulates as PyTorch's does. It knows operations, never models.

mod ambient;
mod autocast;
mod autograd;
mod backward;
mod budget;
mod category;
mod checkpoint;
mod compile;
mod conversion;
mod core;
pub mod fold;
mod kernels;
mod layout;
mod machine;
mod mode;
pub mod ops;
mod param;
mod phase;
mod recording;
mod relay;
mod repeat;
mod row;
mod spare;
mod split_backward;
mod stream;
mod sum;
mod tensor;
mod tensor_info;
mod torch;
mod trace;

pub use autograd::{GradientEdge, GraphNode, Needs};
pub use backward::{borrowing, consuming, grads};
pub use category::Category;
pub use checkpoint::SavePolicy;
pub(in crate::tape) use core::Core;
pub use core::{Backward, Grads, Param, PostAccumulateGradHook, Saved, Tape, Tensor};
pub use headroom_base::DType;
pub use layout::{Dims, Layout, broadcast};
pub use machine::Machine;
pub use mode::Mode;
pub use param::ConstructionPoint;
pub use phase::Phase;
pub use relay::Relay;
pub use row::Folding;
pub use split_backward::{KeptGraph, WeightGradients};
pub use stream::Stream;
pub use sum::Sum;
pub use torch::{AdamStep, Torch};
pub use trace::{
    Copied, Event, Group, Kernel, PhaseStart, Scope, Source, Storage, TensorInfo, Trace, rounded,
};
