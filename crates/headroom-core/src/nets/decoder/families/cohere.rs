//! Command R and R7B (transformers/models/{cohere,cohere2}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, Embeddings, Family, Head, Norm, Norms, Placement, Positions, QkNorm, Rope,
};

/// Command R+ has norms over queries and keys.
pub(crate) fn cohere(sizes: &Sizes) -> Family {
    Family {
        attention: Attention {
            qk_norm: if sizes.is_set("qk_norm") {
                QkNorm::PerHeadOwnWeights
            } else {
                QkNorm::None
            },
            ..COHERE.attention
        },
        ..COHERE
    }
}

const COHERE: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Fp32Interleaved),
        ..LLAMA.embeddings
    },
    norms: Norms {
        kind: Norm::Cohere,
        placement: Placement::Parallel {
            residual_first: true,
        },
        ..LLAMA.norms
    },
    head: Head {
        scaled: true,
        ..LLAMA.head
    },
    ..LLAMA
};

/// Windows with rotation, full attention without.
pub(crate) fn cohere2(sizes: &Sizes) -> Family {
    let interval = sizes.or("global_every", 4);
    Family {
        attention: Attention {
            full_attention_interval: interval,
            no_rope_interval: interval,
            sliding_window: 4096,
            ..COHERE.attention
        },
        ..COHERE
    }
}

/// The language model of Aya Vision.
pub(crate) fn inside(sizes: &Sizes) -> Family {
    Family {
        names: &INSIDE_VISION_MODEL,
        ..cohere2(sizes)
    }
}
