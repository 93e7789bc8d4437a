//! The families and what sets each apart.

use super::super::{Build, Net, Sizes};
use super::experts::Mixture;
use super::{Decoder, Norm, Placement, Traits};

/// Families by the name the catalogue uses.
pub const FAMILIES: &[(&str, Build)] = &[
    ("llama", |sizes| build(sizes, LLAMA)),
    ("mistral", |sizes| build(sizes, LLAMA)),
    ("qwen2", |sizes| build(sizes, QWEN2)),
    ("qwen3", |sizes| build(sizes, QWEN3)),
    ("gemma2", |sizes| build(sizes, GEMMA2)),
    ("mixtral", |sizes| build(sizes, MIXTRAL)),
    ("olmoe", |sizes| build(sizes, OLMOE)),
    ("qwen2_moe", |sizes| build(sizes, QWEN2_MOE)),
    ("qwen3_moe", |sizes| build(sizes, QWEN3_MOE)),
    ("llava", |sizes| super::llava::build(sizes, LLAMA)),
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
const MIXTRAL: Traits = Traits {
    mixture: Some(Mixture {
        normalised: true,
        wide_weights: true,
        shared: false,
    }),
    ..LLAMA
};
const OLMOE: Traits = Traits {
    whole_norms: true,
    mixture: Some(CHOICE),
    ..LLAMA
};
const QWEN2_MOE: Traits = Traits {
    mixture: Some(Mixture {
        shared: true,
        ..CHOICE
    }),
    ..QWEN2
};
/// The published Qwen3 mixtures set `norm_topk_prob`.
const QWEN3_MOE: Traits = Traits {
    mixture: Some(Mixture {
        normalised: true,
        ..CHOICE
    }),
    ..QWEN3
};
const CHOICE: Mixture = Mixture {
    normalised: false,
    wide_weights: false,
    shared: false,
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
    whole_norms: false,
    mixture: None,
    window: 0,
};

fn build(sizes: &Sizes, traits: Traits) -> Result<Box<dyn Net>, String> {
    Ok(Box::new(Decoder::new(sizes, traits)?))
}
