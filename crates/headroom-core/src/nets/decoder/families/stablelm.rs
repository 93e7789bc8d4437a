//! StableLM (transformers/models/stablelm/modeling_stablelm.py).

use super::llama::{LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, Embeddings, Family, Names, Norm, Norms, Placement, Positions, Projection, QkNorm,
    Rope,
};

/// StableLM 2 has norms over heads, and its larger model a parallel residual.
pub(crate) fn stablelm(sizes: &Sizes) -> Family {
    Family {
        names: &Names {
            q_norm: "q_layernorm",
            k_norm: "k_layernorm",
            ..NAMES
        },
        embeddings: Embeddings {
            positions: Positions::Rotary(Rope::PartialInBlock),
            ..LLAMA.embeddings
        },
        attention: Attention {
            qkv_bias: sizes.is_set("qkv_bias"),
            projection: Projection::SeparateThenSplit,
            qk_norm: if sizes.is_set("qk_norm") {
                QkNorm::ModulePerHead
            } else {
                QkNorm::None
            },
            ..LLAMA.attention
        },
        norms: Norms {
            kind: Norm::Layer,
            placement: if sizes.is_set("parallel") {
                Placement::Parallel {
                    residual_first: true,
                }
            } else {
                Placement::PreNamed
            },
            ..LLAMA.norms
        },
        ..LLAMA
    }
}
