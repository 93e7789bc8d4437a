//! Helium (transformers/models/helium/modeling_helium.py): Llama with neighbouring elements rotated by each other.

use super::llama::LLAMA;
use crate::nets::decoder::family::{Embeddings, Family, Norm, Norms, Positions, Rope};

pub(crate) const HELIUM: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialInterleaved),
        ..LLAMA.embeddings
    },
    norms: Norms {
        kind: Norm::Olmo2,
        ..LLAMA.norms
    },
    ..LLAMA
};
