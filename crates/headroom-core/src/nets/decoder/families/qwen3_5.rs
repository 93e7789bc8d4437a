//! The language models of Qwen3.5 and Qwen3-Next (transformers/models/{qwen3_5,qwen3_5_moe,qwen3_next}/modeling_*.py): the
//! gated delta rule in three of four layers, gated attention in the others.

use super::gemma::GEMMA;
use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Norms, Positions, Projection, QkNorm, Rope,
    SharedExpert,
};
use crate::nets::decoder::mixers::Mixer;

pub(crate) const QWEN3_5: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Partial),
        ..LLAMA.embeddings
    },
    attention: Attention {
        projection: Projection::Gated,
        qk_norm: QkNorm::PerHead,
        full_attention_interval: 4,
        position_kinds: true,
        ..LLAMA.attention
    },
    norms: Norms {
        kind: GEMMA.norms.kind,
        ..LLAMA.norms
    },
    mixer: Some(Mixer::GatedDelta),
    ..LLAMA
};

pub(crate) const QWEN3_5_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            shared: SharedExpert::Gated,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..QWEN3_5
};

/// The language models of those that see pictures.
pub(crate) const QWEN3_5_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..QWEN3_5
};

pub(crate) const QWEN3_5_MOE_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..QWEN3_5_MOE
};

/// Its text has positions of one kind.
pub(crate) const QWEN3_NEXT: Family = Family {
    attention: Attention {
        position_kinds: false,
        ..QWEN3_5.attention
    },
    ..QWEN3_5_MOE
};
