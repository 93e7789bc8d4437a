//! Jamba (transformers/models/jamba/modeling_jamba.py): Mamba in most layers, attention without positions in the rest, and a mixture
//! of experts in place of every second MLP.

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{Embeddings, Experts, Family, Mlp, Names, Positions, Router};
use crate::nets::decoder::mixers::Mixer;

pub(crate) const JAMBA: Family = Family {
    names: &Names {
        final_norm: "final_layernorm",
        mlp_norm: "pre_ff_layernorm",
        mlp: Some("feed_forward"),
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Nowhere,
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::Softmax,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    mixer: Some(Mixer::Mamba),
    ..LLAMA
};
