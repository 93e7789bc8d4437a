//! Granite, its mixtures of experts and the hybrids of Granite 4
//! (transformers/models/{granite,granitemoe,granitemoeshared,granitemoehybrid}/modeling_*.py).

use super::llama::{LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, EmbeddingScale, Embeddings, Experts, Family, Head, Mlp, MlpForm, Names, Norms,
    Positions, Router, SharedExpert,
};
use crate::nets::decoder::mixers::Mixer;
use crate::nets::inputs::MaskRules;

pub(crate) const GRANITE: Family = Family {
    embeddings: Embeddings {
        scale: EmbeddingScale::Number,
        ..LLAMA.embeddings
    },
    norms: Norms {
        residual_multiplier: true,
        ..LLAMA.norms
    },
    head: Head {
        scaled: true,
        ..LLAMA.head
    },
    ..LLAMA
};

pub(crate) const GRANITE_MOE: Family = Family {
    names: &Names {
        mlp: Some("shared_mlp"),
        ..NAMES
    },
    mlp: Mlp {
        form: MlpForm::Shared,
        experts: Some(Experts {
            router: Router::SoftmaxOfChosenFp32,
            shared: SharedExpert::BesideExperts,
            ..Experts::PLAIN
        }),
        ..GRANITE.mlp
    },
    ..GRANITE
};

/// Most encode no positions.
pub(crate) fn granite_hybrid(sizes: &Sizes) -> Family {
    Family {
        embeddings: Embeddings {
            positions: if sizes.is_set("rope") {
                GRANITE.embeddings.positions
            } else {
                Positions::Nowhere
            },
            ..GRANITE.embeddings
        },
        attention: Attention {
            mask: MaskRules {
                probed: false,
                always: false,
            },
            ..GRANITE.attention
        },
        mixer: Some(Mixer::Mamba2),
        ..GRANITE_MOE
    }
}
