//! Nemotron-H and Nemotron 3 (transformers/models/nemotron_h/modeling_nemotron_h.py): layers of one part each, by a pattern.

use super::llama::{LLAMA, NAMES};
use crate::nets::decoder::family::{
    Activation, Embeddings, Experts, Family, Head, InitOrder, Mlp, MlpForm, Names, Norm, Norms,
    Placement, Positions, Router, SharedExpert,
};
use crate::nets::decoder::mixers::Mixer;

pub(crate) const NEMOTRON_H: Family = Family {
    names: &Names {
        embed_tokens: "embeddings",
        final_norm: "norm_f",
        input_norm: "norm",
        attention: "mixer",
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Nowhere,
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        form: MlpForm::Plain,
        activation: Activation::ReluSquared,
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SigmoidOfGroups,
            shared: SharedExpert::AfterExperts,
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    norms: Norms {
        kind: Norm::NemotronH,
        placement: Placement::Single,
        ..LLAMA.norms
    },
    head: Head {
        wide: true,
        ..LLAMA.head
    },
    init: InitOrder {
        norms_last: false,
        ..LLAMA.init
    },
    mixer: Some(Mixer::Mamba2),
    ..LLAMA
};
