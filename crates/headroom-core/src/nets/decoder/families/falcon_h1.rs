//! Falcon-H1 (transformers/models/falcon_h1/modeling_falcon_h1.py).

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{
    Attention, EmbeddingScale, Embeddings, Family, Head, InitOrder, Names, Norms, Placement,
};

pub(crate) const FALCON_H1: Family = Family {
    names: &Names {
        final_norm: "final_layernorm",
        mlp_norm: "pre_ff_layernorm",
        mlp: Some("feed_forward"),
        ..NAMES
    },
    embeddings: Embeddings {
        scale: EmbeddingScale::Number,
        ..LLAMA.embeddings
    },
    attention: Attention {
        scaled_keys: true,
        ..LLAMA.attention
    },
    norms: Norms {
        placement: Placement::BesideMamba,
        ..LLAMA.norms
    },
    head: Head {
        scaled: true,
        ..LLAMA.head
    },
    init: InitOrder {
        norms_last: false,
        ..LLAMA.init
    },
    ..LLAMA
};
