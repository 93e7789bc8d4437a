//! Nemotron and Minitron (transformers/models/nemotron/modeling_nemotron.py): layer norms whose weight is counted from one, squared
//! ReLU without a gate, half of a head rotated.

use super::llama::LLAMA;
use crate::nets::decoder::family::{
    Activation, Embeddings, Family, Mlp, MlpForm, Norm, Norms, Positions, Rope,
};

pub(crate) const NEMOTRON: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialConcatenated),
        ..LLAMA.embeddings
    },
    mlp: Mlp {
        form: MlpForm::Plain,
        activation: Activation::ReluSquared,
        ..LLAMA.mlp
    },
    norms: Norms {
        kind: Norm::LayerFromOne,
        ..LLAMA.norms
    },
    ..LLAMA
};
