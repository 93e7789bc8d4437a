//! EXAONE 4 (transformers/models/exaone4/modeling_exaone4.py): windows with rotation, full attention without.

use super::llama::LLAMA;
use super::olmo::OLMO2;
use crate::nets::Sizes;
use crate::nets::decoder::family::{Attention, Family, Norms, QkNorm};

/// The small model has no windows: all of its layers rotate.
pub(crate) fn exaone4(sizes: &Sizes) -> Family {
    let windowed = sizes.or("window", 4096) > 0;
    Family {
        attention: Attention {
            qk_norm: QkNorm::PerHeadTransposed,
            full_attention_interval: if windowed { 4 } else { 1 },
            no_rope_interval: if windowed { 4 } else { 0 },
            sliding_window: if windowed { 4096 } else { 0 },
            ..LLAMA.attention
        },
        norms: Norms {
            placement: OLMO2.norms.placement,
            ..LLAMA.norms
        },
        ..LLAMA
    }
}
