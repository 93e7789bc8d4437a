//! Granite (transformers/models/granite/modeling_granite.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{EmbeddingScale, Embeddings, Family, Head, Norms};

pub(crate) const GRANITE: Family = Family {
    embeddings: Embeddings {
        scale: EmbeddingScale::Number,
        ..LLAMA.embeddings
    },
    norms: Norms {
        residual_multiplier: true,
        ..LLAMA.norms
    },
    head: Head {
        scaled: true,
        ..LLAMA.head
    },
    ..LLAMA
};
