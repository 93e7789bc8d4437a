//! Hunyuan's dense models and its mixtures
//! (transformers/models/{hunyuan_v1_dense,hunyuan_v1_moe}/modeling_*.py).

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{
    Attention, Experts, Family, Mlp, Names, QkNorm, Router, SharedExpert,
};

pub(crate) const HUNYUAN_DENSE: Family = Family {
    names: &Names {
        q_norm: "query_layernorm",
        k_norm: "key_layernorm",
        ..NAMES
    },
    attention: Attention {
        qk_norm: QkNorm::PerHeadAfterRope,
        ..LLAMA.attention
    },
    ..LLAMA
};

pub(crate) const HUNYUAN_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SoftmaxInside,
            shared: SharedExpert::BeforeExperts("shared_mlp"),
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..HUNYUAN_DENSE
};
