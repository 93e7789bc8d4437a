//! MiniMax-M2 (transformers/models/minimax_m2/modeling_minimax_m2.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Positions, Projection, QkNorm, Rope, Router,
};

pub(crate) const MINIMAX_M2: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::Partial),
        ..LLAMA.embeddings
    },
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        qk_norm: QkNorm::WholeProjection,
        ..LLAMA.attention
    },
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::Sigmoid,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..LLAMA
};
