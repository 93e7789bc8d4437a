//! ERNIE 4.5 (transformers/models/{ernie4_5,ernie4_5_moe}/modeling_*.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Embeddings, Experts, Family, Mlp, Positions, Rope, Router, SharedExpert,
};

pub(crate) const ERNIE4_5: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::InterleavedInFp32),
        ..LLAMA.embeddings
    },
    ..LLAMA
};

pub(crate) const ERNIE4_5_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::CorrectedSoftmax,
            shared: SharedExpert::BeforeExperts,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..ERNIE4_5
};
