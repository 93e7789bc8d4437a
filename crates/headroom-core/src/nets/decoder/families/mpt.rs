//! MPT (transformers/models/mpt/modeling_mpt.py); its block is in [`mpt`](crate::nets::decoder::mpt).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{
    Alibi, Attention, Embeddings, Family, Mlp, Names, Norm, Norms, Placement, Positions, Scores,
};
use crate::nets::inputs::MaskRules;

/// The published configurations drop nothing out.
pub(crate) const MPT: Family = Family {
    names: &Names {
        model: "transformer",
        embed_tokens: "wte",
        layers: "blocks",
        final_norm: "norm_f",
        input_norm: "norm_1",
        mlp_norm: "norm_2",
        attention: "attn",
        qkv_proj: "Wqkv",
        o_proj: "out_proj",
        mlp: Some("ffn"),
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Alibi(Alibi::ForAllPlaces),
        ..BIASED.embeddings
    },
    attention: Attention {
        scores: Scores::InBlock,
        mask: MaskRules {
            probed: false,
            always: false,
        },
        ..BIASED.attention
    },
    mlp: Mlp {
        bias: false,
        ..BIASED.mlp
    },
    norms: Norms {
        kind: Norm::LayerUnbiased,
        placement: Placement::Mpt,
        ..BIASED.norms
    },
    ..BIASED
};
