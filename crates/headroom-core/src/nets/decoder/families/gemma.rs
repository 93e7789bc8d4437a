//! Gemma to Gemma 4, and the language models of Gemma 3 with images, PaliGemma and PaliGemma 2
//! (transformers/models/{gemma,gemma2,gemma3,gemma3n,gemma4,paligemma}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Activation, Attention, EmbeddingScale, Embeddings, Family, Head, Mlp, Norm, Norms, Placement,
    QkNorm, Scores,
};

pub(crate) const GEMMA: Family = Family {
    embeddings: Embeddings {
        scale: EmbeddingScale::Tensor,
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        activation: Activation::Gelu,
        ..LLAMA.mlp
    },
    norms: Norms {
        kind: Norm::Gemma,
        ..LLAMA.norms
    },
    ..LLAMA
};

pub(crate) const PALIGEMMA: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..GEMMA
};

pub(crate) const GEMMA2: Family = Family {
    attention: Attention {
        softcap: true,
        full_attention_interval: 2,
        sliding_window: 4096,
        ..GEMMA.attention
    },
    norms: Norms {
        placement: Placement::PreAndPost,
        ..GEMMA.norms
    },
    head: Head {
        softcap: true,
        ..GEMMA.head
    },
    ..GEMMA
};

/// The language model of PaliGemma 2; its class has no SDPA (`_supports_sdpa = False`).
pub(crate) const PALIGEMMA2: Family = Family {
    names: &INSIDE_VISION_MODEL,
    attention: Attention {
        scores: Scores::Capped,
        ..GEMMA2.attention
    },
    ..GEMMA2
};

pub(crate) const GEMMA3_TEXT: Family = Family {
    attention: Attention {
        qk_norm: QkNorm::PerHeadTransposed,
        full_attention_interval: 6,
        sliding_window: 512,
        window_rope: true,
        ..GEMMA.attention
    },
    norms: GEMMA2.norms,
    ..GEMMA
};

pub(crate) const GEMMA3: Family = Family {
    names: &INSIDE_VISION_MODEL,
    attention: Attention {
        sliding_window: 1024,
        ..GEMMA3_TEXT.attention
    },
    ..GEMMA3_TEXT
};

/// `gemma3n/mod.rs` has the rest.
pub(crate) fn gemma3n(sizes: &Sizes) -> Family {
    let later = gemma4(sizes);
    Family {
        attention: Attention {
            full_attention_interval: 5,
            ..later.attention
        },
        ..later
    }
}

/// What is common to its layers with windows and with full attention; `gemma4.rs` has the rest.
pub(crate) fn gemma4(sizes: &Sizes) -> Family {
    Family {
        attention: Attention {
            full_attention_interval: 6,
            sliding_window: 512,
            ..GEMMA.attention
        },
        norms: Norms {
            kind: Norm::Gemma4,
            placement: Placement::PreAndPost,
            ..GEMMA.norms
        },
        head: Head {
            softcap: sizes.or("softcap", 1) != 0,
            ..GEMMA.head
        },
        ..GEMMA
    }
}
