//! Bamba (transformers/models/bamba/modeling_bamba.py): Llama with Mamba 2 in most layers.

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{Embeddings, Family, InitOrder, Names, Positions, Rope};
use crate::nets::decoder::mixers::Mixer;

pub(crate) const BAMBA: Family = Family {
    names: &Names {
        final_norm: "final_layernorm",
        mlp_norm: "pre_ff_layernorm",
        mlp: Some("feed_forward"),
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Partial),
        ..LLAMA.embeddings
    },
    init: InitOrder {
        norms_last: false,
        ..LLAMA.init
    },
    mixer: Some(Mixer::Mamba2),
    ..LLAMA
};
