//! DeepSeek V2 and V3 (transformers/models/{deepseek_v2,deepseek_v3}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{
    Embeddings, Experts, Family, Mlp, Positions, Rope, Router, SharedExpert,
};

pub(crate) const DEEPSEEK_V2: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Complex),
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::SoftmaxOfGroups,
            shared: SharedExpert::AfterExperts,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..LLAMA
};

pub(crate) const DEEPSEEK_V3: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Deinterleaved),
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SigmoidOfGroups,
            shared: SharedExpert::AfterExperts,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..LLAMA
};

/// The language model of DeepSeek-OCR 2: V2's experts with plain attention.
pub(crate) const DEEPSEEK_OCR: Family = Family {
    names: &INSIDE_VISION_MODEL,
    mlp: DEEPSEEK_V2.mlp,
    ..LLAMA
};
