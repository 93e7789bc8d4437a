//! Hunyuan's dense models (transformers/models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py).

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{Attention, Family, Names, QkNorm};

pub(crate) const HUNYUAN_DENSE: Family = Family {
    names: &Names {
        q_norm: "query_layernorm",
        k_norm: "key_layernorm",
        ..NAMES
    },
    attention: Attention {
        qk_norm: QkNorm::PerHeadAfterRope,
        ..LLAMA.attention
    },
    ..LLAMA
};
