//! Mixtral (transformers/models/mixtral/modeling_mixtral.py).

use super::llama::LLAMA;
use crate::nets::decoder::family::{Experts, Family, Mlp, Router};

pub(crate) const MIXTRAL: Family = Family {
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
