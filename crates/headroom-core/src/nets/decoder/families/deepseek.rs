//! DeepSeek V2, V3 and V3.2 (transformers/models/{deepseek_v2,deepseek_v3,deepseek_v32}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Indexer, Mlp, Positions, Rope, Router, SharedExpert,
};
use crate::nets::inputs::MaskRules;

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

/// With an indexer that chooses the keys that a token sees.
pub(crate) const DEEPSEEK_V32: Family = Family {
    attention: Attention {
        indexer: Some(Indexer::Halves),
        mask: MaskRules {
            probed: true,
            always: true,
        },
        ..LLAMA.attention
    },
    ..DEEPSEEK_V3
};
