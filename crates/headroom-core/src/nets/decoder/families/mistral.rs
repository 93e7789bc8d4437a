//! Mistral, the language model of Mistral 3, and Ministral 3
//! (transformers/models/{mistral,mistral3,ministral3}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{Attention, Family};

pub(crate) const MISTRAL: Family = Family {
    attention: Attention {
        repeats_kv: true,
        ..LLAMA.attention
    },
    ..LLAMA
};

pub(crate) const MISTRAL_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..MISTRAL
};

/// The language model of Mistral 3's successors.
pub(crate) const MINISTRAL3_INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..MINISTRAL3
};

pub(crate) const MINISTRAL3: Family = Family {
    attention: Attention {
        queries_by_position: true,
        ..LLAMA.attention
    },
    ..LLAMA
};
