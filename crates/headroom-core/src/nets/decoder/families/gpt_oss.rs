//! GPT-OSS (transformers/models/gpt_oss/modeling_gpt_oss.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Norm, Norms, Positions, Rope, Router, Scores,
};
use crate::nets::inputs::MaskRules;

/// Experts have biases, and their gates are clamped.
pub(crate) const GPT_OSS: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::HalfTables),
        ..LLAMA.embeddings
    },
    attention: Attention {
        qkv_bias: true,
        o_bias: true,
        scores: Scores::Sinks,
        full_attention_interval: 2,
        sliding_window: 128,
        mask: MaskRules {
            probed: false,
            always: false,
        },
        ..LLAMA.attention
    },
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::SoftmaxOfChosen,
            bias: true,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    norms: Norms {
        kind: Norm::Olmo2,
        weights_rebound: true,
        ..LLAMA.norms
    },
    ..LLAMA
};
