//! Phi-1 to Phi-4 and Phi-3.5-MoE (transformers/models/{phi,phi3,phimoe}/modeling_*.py).

use super::llama::{BIASED, LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Activation, Attention, Dropout, Embeddings, Experts, Family, Head, InitOrder, Mlp, MlpForm,
    Names, Norm, Norms, Placement, Positions, Projection, Rope, Router,
};

/// Phi-2 drops out a tenth of what a layer adds, Phi-1 and Phi-1.5 nothing.
pub(crate) fn phi(sizes: &Sizes) -> Family {
    Family {
        dropout: Dropout {
            in_layer: sizes.is_set("resid_dropout"),
            ..Dropout::NONE
        },
        ..PHI
    }
}

const PHI: Family = Family {
    names: &Names {
        final_norm: "final_layernorm",
        o_proj: "dense",
        up_proj: "fc1",
        down_proj: "fc2",
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialInBlock),
        ..BIASED.embeddings
    },
    mlp: Mlp {
        activation: Activation::GeluNew,
        ..BIASED.mlp
    },
    norms: Norms {
        placement: Placement::Parallel {
            residual_first: false,
        },
        ..BIASED.norms
    },
    head: Head {
        bias: true,
        ..BIASED.head
    },
    ..BIASED
};

pub(crate) const PHI3: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialConcatenated),
        ..LLAMA.embeddings
    },
    attention: Attention {
        projection: Projection::Fused,
        ..LLAMA.attention
    },
    mlp: Mlp {
        form: MlpForm::FusedGated,
        ..LLAMA.mlp
    },
    init: InitOrder {
        o_proj_first: true,
        ..LLAMA.init
    },
    ..LLAMA
};

/// The published models have biases; their windows are as long as their contexts.
pub(crate) fn phimoe(sizes: &Sizes) -> Family {
    let biased = sizes.is_set("qkv_bias");
    Family {
        attention: Attention {
            qkv_bias: biased,
            o_bias: biased,
            ..LLAMA.attention
        },
        mlp: Mlp {
            experts: Some(Experts {
                router: Router::SparseMixer,
                ..Experts::PLAIN
            }),
            ..LLAMA.mlp
        },
        norms: Norms {
            kind: Norm::Layer,
            ..LLAMA.norms
        },
        head: Head {
            bias: sizes.is_set("head_bias"),
            ..LLAMA.head
        },
        ..LLAMA
    }
}
