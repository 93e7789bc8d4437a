//! Arcee (transformers/models/arcee/modeling_arcee.py): an MLP of two matrices with squared ReLU.

use super::llama::LLAMA;
use crate::nets::decoder::family::{Activation, Family, Mlp, MlpForm};

pub(crate) const ARCEE: Family = Family {
    mlp: Mlp {
        form: MlpForm::Plain,
        activation: Activation::ReluSquared,
        ..LLAMA.mlp
    },
    ..LLAMA
};
