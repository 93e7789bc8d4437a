//! GPT-BigCode and GPT-Neo, whose modules have GPT-2's names
//! (transformers/models/{gpt_bigcode,gpt_neo}/modeling_*.py).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{
    Activation, Attention, Dropout, Embeddings, Family, Head, InitOrder, Mlp, Names, Norms,
    Placement, Positions, Projection, Scores,
};

const GPT2_NAMES: Names = Names {
    model: "transformer",
    embed_tokens: "wte",
    embed_positions: "wpe",
    layers: "h",
    final_norm: "ln_f",
    input_norm: "ln_1",
    mlp_norm: "ln_2",
    attention: "attn",
    qkv_proj: "c_attn",
    o_proj: "c_proj",
    up_proj: "c_fc",
    down_proj: "c_proj",
    ..NAMES
};

pub(crate) const GPT_BIGCODE: Family = Family {
    names: &GPT2_NAMES,
    embeddings: Embeddings {
        positions: Positions::Learned,
        ..BIASED.embeddings
    },
    attention: Attention {
        projection: Projection::FusedMultiQuery,
        unused_causal_buffer: true,
        ..BIASED.attention
    },
    norms: Norms {
        placement: Placement::PreHolding,
        ..BIASED.norms
    },
    head: Head {
        loss_in_model_dtype: true,
        ..BIASED.head
    },
    init: InitOrder {
        norms_last: false,
        ..BIASED.init
    },
    dropout: Dropout {
        embeddings: true,
        attention: true,
        in_sublayers: true,
        in_layer: false,
    },
    ..BIASED
};

/// The published configurations drop nothing out.
pub(crate) const GPT_NEO: Family = Family {
    names: &Names {
        attention: "attn.attention",
        o_proj: "out_proj",
        ..GPT2_NAMES
    },
    embeddings: GPT_BIGCODE.embeddings,
    attention: Attention {
        qkv_bias: false,
        projection: Projection::SeparateThenSplit,
        scores: Scores::Fp32,
        ..BIASED.attention
    },
    mlp: Mlp {
        activation: Activation::GeluNew,
        ..BIASED.mlp
    },
    norms: GPT_BIGCODE.norms,
    init: GPT_BIGCODE.init,
    ..BIASED
};
