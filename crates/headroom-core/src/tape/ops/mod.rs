//! The operations: each allocates, saves and frees what PyTorch's does.
//!
//! Gradients are computed in the order of the generated code (torch/csrc/autograd/generated/Functions.cpp: by input name),
//! then summed to the inputs' shapes and cast to their types (`validate_outputs` in engine.cpp).

mod activation;
mod arithmetic;
mod assign;
mod attention;
mod batch_norm;
mod circular;
mod conv;
mod copy;
mod ctc;
mod cut_cross_entropy;
mod declared;
mod deform_conv;
mod dropout;
mod dtensor;
mod einsum;
mod embedding;
mod experts;
mod fill;
mod flash;
mod float8;
mod float8_eager;
mod fused_head;
mod gather;
mod gelu_tanh;
mod group_norm;
mod hooks;
mod index;
mod interpolate;
mod liger;
mod liger_chunked;
mod log_probs;
mod loss;
mod loss_parallel;
mod low_bits;
mod mask;
mod masked_scatter;
mod matmul;
mod megatron;
mod nf4;
mod norm;
mod packed;
mod pad;
mod pointwise;
mod pool;
mod quantised;
mod recorded;
mod recurrent;
mod reduce;
mod ring;
mod scan;
mod scatter;
mod shape;
mod softmax;
mod triangular;
mod unary;
mod unbind;
mod unfold;
mod written;

pub(crate) use attention::{AttentionMask, repeat_heads};
pub use conv::Conv;
pub(crate) use float8_eager::Float8;
pub(crate) use megatron::{EmptyGradients, MemoryBuffer, Tokens, WeightGradient};
pub(crate) use recorded::{Call, Operand};
pub(crate) use softmax::log_softmax;

use std::rc::Rc;

use super::layout::Shared;
use super::{DType, Dims, Tensor};

/// What a gradient must look like to flow into an input (`InputMetadata`). Small, for every backward captures some.
#[derive(Clone)]
pub(super) struct Meta {
    like: Rc<Shared>,
    dtype: DType,
}

impl Meta {
    pub(super) fn shape(&self) -> &Dims {
        &self.like.layout.shape
    }
}

impl Tensor {
    pub(super) fn meta(&self) -> Meta {
        Meta {
            like: self.shared_layout().clone(),
            dtype: self.dtype(),
        }
    }

    /// `validate_outputs`: summed to the input's shape, then cast to its type.
    pub(super) fn conform(self, meta: Meta) -> Tensor {
        let alike = Rc::ptr_eq(self.shared_layout(), &meta.like) || *self.shape() == *meta.shape();
        let summed = if alike {
            self
        } else {
            self.pipe(|whole| whole.sum_to(*meta.shape()))
        };
        if summed.dtype() == meta.dtype {
            summed
        } else {
            summed.to(meta.dtype)
        }
    }
}
