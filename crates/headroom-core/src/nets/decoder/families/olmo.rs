//! OLMo to OLMo 3 and OLMoE (transformers/models/{olmo,olmo2,olmo3,olmoe}/modeling_*.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Norm, Norms, Placement, Positions, Projection,
    QkNorm, Rope,
};

pub(crate) const OLMO: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Fp32Tables),
        ..LLAMA.embeddings
    },
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        ..LLAMA.attention
    },
    norms: Norms {
        kind: Norm::Unweighted,
        ..LLAMA.norms
    },
    ..LLAMA
};

pub(crate) const OLMO2: Family = Family {
    attention: Attention {
        qk_norm: QkNorm::WholeProjection,
        ..OLMO.attention
    },
    norms: Norms {
        kind: Norm::Olmo2,
        placement: Placement::Post,
        ..OLMO.norms
    },
    ..OLMO
};

/// Three of four layers see a window, with rotary tables of their own.
pub(crate) const OLMO3: Family = Family {
    attention: Attention {
        full_attention_interval: 4,
        sliding_window: 4096,
        window_rope: true,
        ..OLMO2.attention
    },
    ..OLMO2
};

pub(crate) const OLMOE: Family = Family {
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        qk_norm: QkNorm::WholeProjection,
        ..LLAMA.attention
    },
    mlp: Mlp {
        experts: Some(Experts::PLAIN),
        ..LLAMA.mlp
    },
    ..LLAMA
};
