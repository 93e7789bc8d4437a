//! GPT-NeoX and Pythia (transformers/models/gpt_neox/modeling_gpt_neox.py).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{
    Attention, Embeddings, Family, Names, Norms, Placement, Positions, Projection, Rope,
};

pub(crate) const GPT_NEOX: Family = Family {
    names: &Names {
        model: "gpt_neox",
        embed_tokens: "embed_in",
        final_norm: "final_layer_norm",
        attention: "attention",
        qkv_proj: "query_key_value",
        o_proj: "dense",
        up_proj: "dense_h_to_4h",
        down_proj: "dense_4h_to_h",
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Partial),
        ..BIASED.embeddings
    },
    attention: Attention {
        projection: Projection::FusedByHead,
        ..BIASED.attention
    },
    norms: Norms {
        placement: Placement::ParallelTwoNorms,
        ..BIASED.norms
    },
    ..BIASED
};
