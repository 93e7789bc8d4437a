//! Apertus (transformers/models/apertus/modeling_apertus.py): norms over heads, and an MLP of two matrices around an activation
//! with parameters of its own.

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{Attention, Family, Mlp, MlpForm, Names, QkNorm};

pub(crate) const APERTUS: Family = Family {
    names: &Names {
        input_norm: "attention_layernorm",
        mlp_norm: "feedforward_layernorm",
        ..NAMES
    },
    attention: Attention {
        qk_norm: QkNorm::PerHeadTransposed,
        ..LLAMA.attention
    },
    mlp: Mlp {
        form: MlpForm::Xielu,
        ..LLAMA.mlp
    },
    ..LLAMA
};
