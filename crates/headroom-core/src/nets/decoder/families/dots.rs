//! dots.llm1 (transformers/models/dots1/modeling_dots1.py): the mixture of DeepSeek V3 behind attention with norms over heads.

use super::deepseek::DEEPSEEK_V3;
use super::llama::LLAMA;
use crate::nets::decoder::family::{Attention, Family, QkNorm};

pub(crate) const DOTS1: Family = Family {
    attention: Attention {
        qk_norm: QkNorm::PerHead,
        ..LLAMA.attention
    },
    mlp: DEEPSEEK_V3.mlp,
    ..LLAMA
};
