//! OPT (transformers/models/opt/modeling_opt.py).

use super::llama::{BIASED, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Activation, Attention, Dropout, Embeddings, Family, InitOrder, Mlp, Names, Norms, Placement,
    Positions, Projection,
};
use crate::nets::inputs::MaskRules;

const OPT_NAMES: Names = Names {
    inner: Some("decoder"),
    final_norm: "final_layer_norm",
    input_norm: "self_attn_layer_norm",
    mlp_norm: "final_layer_norm",
    o_proj: "out_proj",
    mlp: None,
    up_proj: "fc1",
    down_proj: "fc2",
    ..NAMES
};

/// The language model of BLIP-2.
pub(crate) fn inside(sizes: &Sizes) -> Family {
    Family {
        names: &Names {
            model: "language_model",
            inner: None,
            ..OPT_NAMES
        },
        ..opt(sizes)
    }
}

/// OPT-350m alone normalises sums instead of inputs.
pub(crate) fn opt(sizes: &Sizes) -> Family {
    Family {
        names: &OPT_NAMES,
        embeddings: Embeddings {
            positions: Positions::LearnedByMask,
            ..BIASED.embeddings
        },
        attention: Attention {
            projection: Projection::ScaledQueryFirst,
            mask: MaskRules {
                probed: false,
                always: false,
            },
            ..BIASED.attention
        },
        mlp: Mlp {
            activation: Activation::Relu,
            flattens_tokens: true,
            ..BIASED.mlp
        },
        norms: Norms {
            placement: if sizes.or("pre_norm", 1) == 0 {
                Placement::PostSum
            } else {
                Placement::Pre
            },
            ..BIASED.norms
        },
        init: InitOrder {
            norms_last: false,
            ..BIASED.init
        },
        dropout: Dropout {
            in_layer: true,
            ..Dropout::NONE
        },
        ..BIASED
    }
}
