//! Mistral, the language model of Mistral 3, Ministral 3 and Mistral 4
//! (transformers/models/{mistral,mistral3,ministral3,mistral4}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Positions, Rope, Router, SharedExpert,
};

pub(crate) const MISTRAL: Family = Family {
    attention: Attention {
        repeats_kv: true,
        ..LLAMA.attention
    },
    ..LLAMA
};

pub(crate) const MISTRAL_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..MISTRAL
};

/// The language model of Mistral 3's successors.
pub(crate) const MINISTRAL3_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..MINISTRAL3
};

pub(crate) const MINISTRAL3: Family = Family {
    attention: Attention {
        queries_by_position: true,
        ..LLAMA.attention
    },
    ..LLAMA
};

/// Latent attention and a mixture of experts.
pub(crate) const MISTRAL4: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Deinterleaved),
        ..LLAMA.embeddings
    },
    attention: MINISTRAL3.attention,
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SoftmaxOfBestGroups,
            shared: SharedExpert::AfterExperts,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..LLAMA
};
