//! Mixtral (transformers/models/mixtral/modeling_mixtral.py).

use super::llama::LLAMA;
use crate::nets::decoder::experts::{Experts, Router};
use crate::nets::decoder::family::{Family, Mlp};

pub const MIXTRAL: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SoftmaxFp32,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..LLAMA
};
