//! Llama 4 (transformers/models/llama4/modeling_llama4.py): three of four layers attend within chunks and rotate; mixtures of
//! experts, in some models in every second layer.

use super::llama::{LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Names, Positions, QkNorm, Rope, Router,
};

fn llama4(sizes: &Sizes) -> Family {
    Family {
        names: &Names {
            mlp: Some("feed_forward"),
            ..NAMES
        },
        embeddings: Embeddings {
            positions: Positions::Rotary(Rope::Complex),
            ..LLAMA.embeddings
        },
        attention: Attention {
            full_attention_interval: 4,
            no_rope_interval: 4,
            // `attention_chunk_size`.
            sliding_window: 8192,
            qk_norm: if sizes.or("qk_norm", 1) != 0 {
                QkNorm::LengthAfterRope
            } else {
                QkNorm::None
            },
            ..LLAMA.attention
        },
        mlp: Mlp {
            experts: Some(Experts {
                router: Router::EveryExpert,
                ..Experts::PLAIN
            }),
            ..LLAMA.mlp
        },
        ..LLAMA
    }
}

/// The language model of Llama 4 with pictures.
pub(crate) fn inside(sizes: &Sizes) -> Family {
    Family {
        names: &Names {
            model: "language_model",
            inner: Some("model"),
            mlp: Some("feed_forward"),
            ..NAMES
        },
        ..llama4(sizes)
    }
}

/// Sizes by the names that the decoder has for them: `ffn` is the width of experts, `dense_ffn` that of MLPs, and every n-th layer has
/// experts.
pub(crate) fn sizes(given: &Sizes) -> Sizes {
    let (inner, every) = (given.or("ffn", 8192), given.or("moe_every", 1).max(1));
    let mut sizes = given.clone();
    sizes.set("moe_ffn", inner);
    sizes.set("ffn", given.or("dense_ffn", inner));
    let layers = given.or("layers", 0).min(240);
    for part in 0..layers.div_ceil(20) {
        let own = (0..20).filter(|bit| (part * 20 + bit + 1).is_multiple_of(every));
        let bits = own.fold(0, |bits, bit| bits | 1 << bit);
        sizes.set(&format!("sparse_{part}"), bits);
    }
    sizes
}
