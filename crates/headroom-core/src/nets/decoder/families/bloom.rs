//! BLOOM (transformers/models/bloom/modeling_bloom.py); its block is in [`bloom`](crate::nets::decoder::bloom).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{
    Alibi, Attention, Embeddings, Family, Names, Norms, Placement, Positions, Scores,
};
use crate::nets::inputs::MaskRules;

pub(crate) const BLOOM: Family = Family {
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
    embeddings: Embeddings {
        norm: Some("word_embeddings_layernorm"),
        positions: Positions::Alibi(Alibi::ForSamples),
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
    norms: Norms {
        placement: Placement::Bloom,
        ..BIASED.norms
    },
    ..BIASED
};
