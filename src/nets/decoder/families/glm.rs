//! GLM-4 (transformers/models/glm/modeling_glm.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{Attention, Embeddings, Family, Mlp, MlpForm, Positions, Rope};

pub const GLM: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialInterleaved),
        ..LLAMA.embeddings
    },
    attention: Attention {
        qkv_bias: true,
        ..LLAMA.attention
    },
    mlp: Mlp {
        form: MlpForm::FusedGated,
        ..LLAMA.mlp
    },
    ..LLAMA
};
