//! ERNIE 4.5, and PaddleOCR-VL, which is built on it (transformers/models/{ernie4_5,ernie4_5_moe,paddleocr_vl}/modeling_*.py).

use super::llama::{INSIDE_VISION_MODEL, LLAMA};
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Mlp, Positions, Projection, Rope, Router, SharedExpert,
};

pub(crate) const ERNIE4_5: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::InterleavedInFp32),
        ..LLAMA.embeddings
    },
    ..LLAMA
};

pub(crate) const ERNIE4_5_MOE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            router: Router::CorrectedSoftmax,
            shared: SharedExpert::BeforeExperts("shared_experts"),
            ..Experts::PLAIN
        }),
        ..LLAMA.mlp
    },
    ..ERNIE4_5
};

/// The language model of PaddleOCR-VL: ERNIE's sizes with rotation as Qwen2-VL has it.
pub(crate) const PADDLE_OCR: Family = Family {
    names: &INSIDE_VISION_MODEL,
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        ..LLAMA.attention
    },
    ..LLAMA
};
