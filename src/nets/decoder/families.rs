//! The families and what sets each apart.

use super::super::{Build, Net, Sizes};
use super::{Decoder, Norm, Placement, Traits};

/// Families by the name the catalogue uses.
pub const FAMILIES: &[(&str, Build)] = &[
    ("llama", |sizes| build(sizes, LLAMA)),
    ("mistral", |sizes| build(sizes, LLAMA)),
    ("qwen2", |sizes| build(sizes, QWEN2)),
    ("qwen3", |sizes| build(sizes, QWEN3)),
    ("gemma2", |sizes| build(sizes, GEMMA2)),
    ("phi3", |sizes| build(sizes, PHI3)),
];

const QWEN2: Traits = Traits {
    qkv_bias: true,
    ..LLAMA
};
const QWEN3: Traits = Traits {
    head_norms: true,
    ..LLAMA
};
const PHI3: Traits = Traits {
    fused: true,
    ..LLAMA
};
const GEMMA2: Traits = Traits {
    norm: Norm::Gemma,
    placement: Placement::Around,
    scaled_embeddings: true,
    gelu: true,
    soft_caps: true,
    full_attention_every: 2,
    window: 4096,
    ..LLAMA
};
const LLAMA: Traits = Traits {
    qkv_bias: false,
    out_bias: false,
    head_norms: false,
    fused: false,
    norm: Norm::Llama,
    placement: Placement::Before,
    scaled_embeddings: false,
    gelu: false,
    soft_caps: false,
    full_attention_every: 1,
    window: 0,
};

fn build(sizes: &Sizes, traits: Traits) -> Result<Box<dyn Net>, String> {
    Ok(Box::new(Decoder::new(sizes, traits)?))
}
