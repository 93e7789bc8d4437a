//! LFM2 (transformers/models/{lfm2,lfm2_moe}/modeling_*.py): short gated convolutions, and attention in a few layers.

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{Attention, Experts, Family, Mlp, Names, QkNorm, Router};
use crate::nets::decoder::mixers::Mixer;

const LFM2_NAMES: Names = Names {
    final_norm: "embedding_norm",
    input_norm: "operator_norm",
    mlp_norm: "ffn_norm",
    o_proj: "out_proj",
    q_norm: "q_layernorm",
    k_norm: "k_layernorm",
    mlp: Some("feed_forward"),
    gate_proj: "w1",
    up_proj: "w3",
    down_proj: "w2",
    ..NAMES
};

pub(crate) const LFM2: Family = Family {
    names: &LFM2_NAMES,
    attention: Attention {
        qk_norm: QkNorm::PerHead,
        ..LLAMA.attention
    },
    mixer: Some(Mixer::ShortConv),
    ..LLAMA
};

/// The language model of LFM2-VL.
pub(crate) const INSIDE: Family = Family {
    names: &Names {
        inner: Some("language_model"),
        ..LFM2_NAMES
    },
    ..LFM2
};

pub(crate) const LFM2_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::SigmoidInModelType,
            ..Experts::PLAIN
        }),
        ..LFM2.mlp
    },
    ..LFM2
};
