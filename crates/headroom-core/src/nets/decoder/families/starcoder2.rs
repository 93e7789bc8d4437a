//! StarCoder2 (transformers/models/starcoder2/modeling_starcoder2.py).

use super::llama::{BIASED, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{Attention, Dropout, Family, Mlp, Names};

/// The published configurations drop out a tenth everywhere and see windows of 4096 tokens.
const STARCODER2: Family = Family {
    names: &Names {
        up_proj: "c_fc",
        down_proj: "c_proj",
        ..NAMES
    },
    attention: Attention {
        full_attention_interval: 0,
        sliding_window: 4096,
        ..BIASED.attention
    },
    dropout: Dropout {
        embeddings: true,
        attention: true,
        in_sublayers: true,
        in_layer: false,
    },
    ..BIASED
};

/// `use_bias` is on in all that were published.
pub(crate) fn starcoder2(sizes: &Sizes) -> Family {
    let bias = sizes.or("bias", 1) != 0;
    Family {
        attention: Attention {
            qkv_bias: bias,
            o_bias: bias,
            ..STARCODER2.attention
        },
        mlp: Mlp {
            bias,
            ..STARCODER2.mlp
        },
        ..STARCODER2
    }
}
