//! Command R (transformers/models/cohere/modeling_cohere.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Embeddings, Family, Head, Norm, Norms, Placement, Positions, Rope,
};

pub(crate) const COHERE: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Fp32Interleaved),
        ..LLAMA.embeddings
    },
    norms: Norms {
        kind: Norm::Cohere,
        placement: Placement::Parallel {
            residual_first: true,
        },
        ..LLAMA.norms
    },
    head: Head {
        scaled: true,
        ..LLAMA.head
    },
    ..LLAMA
};
