//! Mistral (transformers/models/mistral/modeling_mistral.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{Attention, Family};

pub(crate) const MISTRAL: Family = Family {
    attention: Attention {
        repeats_kv: true,
        ..LLAMA.attention
    },
    ..LLAMA
};
