//! BitNet (transformers/models/bitnet/modeling_bitnet.py): squared ReLU, and a norm before the last product of each sublayer.
//! Its weights are trained as they are; packing them comes afterwards.

use super::llama::LLAMA;
use crate::nets::decoder::family::{Activation, Attention, Family, Mlp};

pub(crate) const BITNET: Family = Family {
    attention: Attention {
        sub_norm: Some("attn_sub_norm"),
        ..LLAMA.attention
    },
    mlp: Mlp {
        activation: Activation::ReluSquared,
        sub_norm: Some("ffn_sub_norm"),
        ..LLAMA.mlp
    },
    ..LLAMA
};
