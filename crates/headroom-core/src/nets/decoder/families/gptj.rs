//! GPT-J and CodeGen (transformers/models/{gptj,codegen}/modeling_*.py); their block is in [`gptj`](crate::nets::decoder::gptj).

use super::llama::{BIASED, NAMES};
use crate::nets::decoder::family::{
    Activation, Attention, Embeddings, Family, Head, Mlp, Names, Norms, Placement, Positions,
    Projection, Rope, Scores,
};

/// The published configuration drops nothing out.
pub(crate) const GPTJ: Family = Family {
    names: &Names {
        model: "transformer",
        embed_tokens: "wte",
        layers: "h",
        final_norm: "ln_f",
        input_norm: "ln_1",
        attention: "attn",
        o_proj: "out_proj",
        up_proj: "fc_in",
        down_proj: "fc_out",
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::InBlock),
        ..BIASED.embeddings
    },
    attention: Attention {
        scores: Scores::InBlock,
        ..BIASED.attention
    },
    mlp: Mlp {
        activation: Activation::GeluNew,
        ..BIASED.mlp
    },
    norms: Norms {
        placement: Placement::GptJ,
        ..BIASED.norms
    },
    head: Head {
        bias: true,
        ..BIASED.head
    },
    ..BIASED
};

pub(crate) const CODEGEN: Family = Family {
    attention: Attention {
        projection: Projection::Fused,
        ..GPTJ.attention
    },
    ..GPTJ
};
