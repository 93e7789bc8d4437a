//! The families and what sets each apart.

use super::super::{Build, Net, Sizes};
use super::{Decoder, Traits};

/// Families by the name the catalogue uses.
pub const FAMILIES: &[(&str, Build)] = &[
    ("llama", |sizes| build(sizes, Traits::default())),
    ("mistral", |sizes| build(sizes, Traits::default())),
    ("qwen2", |sizes| build(sizes, QWEN2)),
    ("qwen3", |sizes| build(sizes, QWEN3)),
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
const LLAMA: Traits = Traits {
    qkv_bias: false,
    out_bias: false,
    head_norms: false,
    fused: false,
};

fn build(sizes: &Sizes, traits: Traits) -> Result<Box<dyn Net>, String> {
    Ok(Box::new(Decoder::new(sizes, traits)?))
}
