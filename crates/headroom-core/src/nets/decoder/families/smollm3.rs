//! SmolLM3 (transformers/models/smollm3/modeling_smollm3.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{Attention, Family};

pub(crate) const SMOLLM3: Family = Family {
    attention: Attention {
        no_rope_interval: 4,
        ..LLAMA.attention
    },
    ..LLAMA
};
