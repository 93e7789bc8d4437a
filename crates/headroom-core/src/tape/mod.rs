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
pub(crate) mod fold;
mod kernels;
mod layout;
mod live_bytes;
mod machine;
mod mode;
mod offload;
pub(crate) mod ops;
mod param;
mod phase;
mod recording;
mod relay;
mod repeat;
mod row;
mod spare;
mod split_backward;
mod stream;
mod tensor;
mod tensor_info;
mod torch;
mod trace;

pub(crate) use autograd::{GradientEdge, GraphNode, Needs};
pub(crate) use backward::{borrowing, consuming, grads};
pub use category::Category;
pub(crate) use checkpoint::SavePolicy;
pub(in crate::tape) use core::Core;
pub(crate) use core::{Backward, Grads, Param, PostAccumulateGradHook, Saved};
pub use core::{Tape, Tensor};
pub(crate) use headroom_base::DType;
pub(crate) use layout::{Dims, Layout, broadcast};
pub(crate) use live_bytes::LiveBytes;
pub use machine::Machine;
pub(crate) use mode::Mode;
pub(crate) use param::ConstructionPoint;
pub use phase::Phase;
pub(crate) use relay::Relay;
pub use row::Folding;
pub(crate) use split_backward::{KeptGraph, WeightGradients};
pub(crate) use stream::Stream;
pub(crate) use torch::{AdamStep, Torch};
pub use trace::rounded;
pub(crate) use trace::{
    Copied, Event, Group, Kernel, PhaseStart, Scope, Source, Storage, TensorInfo, Trace,
};
