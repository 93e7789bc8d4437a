//! Kimi Linear (transformers/models/kimi_linear/modeling_kimi_linear.py): the delta rule with a decay for each channel in most
//! layers, latent attention without rotation in the others, the mixture of DeepSeek V3.

use super::deepseek::DEEPSEEK_V3;
use super::llama::LLAMA;
use crate::nets::decoder::family::{Embeddings, Family, Positions};
use crate::nets::decoder::mixers::Mixer;

pub(crate) const KIMI_LINEAR: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Nowhere,
        ..LLAMA.embeddings
    },
    mixer: Some(Mixer::KimiDelta),
    ..DEEPSEEK_V3
};
