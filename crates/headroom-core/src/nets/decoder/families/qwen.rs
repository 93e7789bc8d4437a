//! Qwen2, Qwen3, their mixtures of experts, and the language models of Qwen2-VL to Qwen3-VL
//! (transformers/models/{qwen2,qwen3,qwen2_moe,qwen3_moe,qwen2_vl,qwen2_5_vl,qwen3_vl,qwen3_vl_moe}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA, NAMES};
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Head, Mlp, Names, Positions, Projection, QkNorm, Rope,
    SharedExpert,
};

/// Qwen of 2023, by the file in its repository (modeling_qwen.py): one product makes queries, keys and values, and the loss casts
/// no logits up.
pub(crate) const QWEN: Family = Family {
    names: &Names {
        qkv_proj: "c_attn",
        ..NAMES
    },
    attention: Attention {
        projection: Projection::Fused,
        ..QWEN2.attention
    },
    head: Head {
        loss_in_model_dtype: true,
        ..LLAMA.head
    },
    ..LLAMA
};

pub(crate) const QWEN2: Family = Family {
    attention: Attention {
        qkv_bias: true,
        ..LLAMA.attention
    },
    ..LLAMA
};

/// The language model of LLaVA-OneVision and InternVL 3.
pub(crate) const QWEN2_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..QWEN2
};

pub(crate) const QWEN2_MOE: Family = Family {
    attention: Attention {
        unused_window_mask: true,
        ..QWEN2.attention
    },
    mlp: Mlp {
        experts: Some(Experts {
            shared: SharedExpert::Gated,
            ..Experts::PLAIN
        }),
        ..QWEN2.mlp
    },
    ..QWEN2
};

pub(crate) const QWEN2_VL: Family = Family {
    names: &INSIDE_VISION_MODEL,
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        ..QWEN2.attention
    },
    ..QWEN2
};

pub(crate) const QWEN3: Family = Family {
    attention: Attention {
        qk_norm: QkNorm::PerHead,
        ..LLAMA.attention
    },
    ..LLAMA
};

/// The published models set `norm_topk_prob`.
pub(crate) const QWEN3_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            ..Experts::PLAIN
        }),
        ..QWEN3.mlp
    },
    ..QWEN3
};

/// The language models of InternVL 3.5.
pub(crate) const QWEN3_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..QWEN3
};

pub(crate) const QWEN3_MOE_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..QWEN3_MOE
};

/// The places of time, height and width take turns among the frequencies.
const INTERLEAVED: Embeddings = Embeddings {
    positions: Positions::Rotary(Rope::InterleavedSections),
    ..LLAMA.embeddings
};

pub(crate) const QWEN3_VL: Family = Family {
    names: &INSIDE_VISION_MODEL,
    embeddings: INTERLEAVED,
    ..QWEN3
};

pub(crate) const QWEN3_VL_MOE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    embeddings: INTERLEAVED,
    ..QWEN3_MOE
};
