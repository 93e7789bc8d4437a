//! Falcon (transformers/models/falcon/modeling_falcon.py); its block is in [`falcon`](crate::nets::decoder::falcon).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{Attention, Family, Mlp, Names, Norms, Placement};
use crate::nets::inputs::MaskRules;

pub(crate) const FALCON: Family = Family {
    names: &Names {
        model: "transformer",
        embed_tokens: "word_embeddings",
        layers: "h",
        final_norm: "ln_f",
        attention: "self_attention",
        qkv_proj: "query_key_value",
        o_proj: "dense",
        up_proj: "dense_h_to_4h",
        down_proj: "dense_4h_to_h",
        ..NAMES
    },
    attention: Attention {
        mask: MaskRules {
            probed: false,
            always: true,
        },
        ..BIASED.attention
    },
    mlp: Mlp {
        bias: false,
        ..BIASED.mlp
    },
    norms: Norms {
        placement: Placement::Falcon,
        ..BIASED.norms
    },
    ..BIASED
};
