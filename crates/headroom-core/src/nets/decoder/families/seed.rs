//! Seed-OSS (transformers/models/seed_oss/modeling_seed_oss.py).

use super::llama::LLAMA;
use crate::nets::Sizes;
use crate::nets::decoder::family::{Attention, Dropout, Family};

/// The published model has biases at queries, keys and values, and drops out a tenth of what the sublayers return.
pub(crate) fn seed_oss(sizes: &Sizes) -> Family {
    Family {
        attention: Attention {
            qkv_bias: sizes.or("qkv_bias", 1) != 0,
            o_bias: sizes.is_set("o_bias"),
            ..LLAMA.attention
        },
        dropout: Dropout {
            in_sublayers: sizes.or("resid_dropout", 1) != 0,
            ..Dropout::NONE
        },
        ..LLAMA
    }
}
