//! Llama (transformers/models/llama/modeling_llama.py), the baseline that other families are differences from.

use crate::nets::decoder::family::{
    Activation, Attention, Dropout, EmbeddingScale, Embeddings, Family, Head, InitOrder, Mlp,
    MlpForm, Names, Norm, Norms, Placement, Positions, Projection, QkNorm, Rope, Scores,
};
use crate::nets::inputs::MaskRules;

pub(crate) const LLAMA: Family = Family {
    names: &NAMES,
    embeddings: Embeddings {
        norm: None,
        scale: EmbeddingScale::None,
        positions: Positions::Rotary(Rope::Full),
    },
    attention: Attention {
        qkv_bias: false,
        o_bias: false,
        projection: Projection::Separate,
        qk_norm: QkNorm::None,
        scores: Scores::Library,
        softcap: false,
        full_attention_interval: 1,
        sliding_window: 0,
        window_rope: false,
        mask: MaskRules {
            probed: true,
            always: false,
        },
        unused_window_mask: false,
        unused_causal_buffer: false,
        no_rope_interval: 0,
        repeats_kv: false,
        scaled_keys: false,
        queries_by_position: false,
        sub_norm: None,
        position_kinds: false,
        indexer: None,
    },
    mlp: Mlp {
        form: MlpForm::Gated,
        bias: false,
        activation: Activation::Silu,
        experts: None,
        sub_norm: None,
        flattens_tokens: false,
    },
    norms: Norms {
        kind: Norm::Llama,
        placement: Placement::Pre,
        residual_multiplier: false,
        weights_rebound: false,
    },
    head: Head {
        bias: false,
        softcap: false,
        scaled: false,
        wide: false,
        loss_in_model_dtype: false,
    },
    init: InitOrder {
        norms_last: true,
        o_proj_first: false,
    },
    dropout: Dropout::NONE,
    mixer: None,
};

pub(crate) const NAMES: Names = Names {
    model: "model",
    inner: None,
    embed_tokens: "embed_tokens",
    embed_positions: "embed_positions",
    layers: "layers",
    final_norm: "norm",
    input_norm: "input_layernorm",
    mlp_norm: "post_attention_layernorm",
    further_norms: [
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ],
    attention: "self_attn",
    qkv_proj: "qkv_proj",
    o_proj: "o_proj",
    q_norm: "q_norm",
    k_norm: "k_norm",
    mlp: Some("mlp"),
    gate_proj: "gate_proj",
    up_proj: "up_proj",
    down_proj: "down_proj",
};

/// The language model inside a model that sees images.
pub(crate) const INSIDE_VISION_MODEL: Names = Names {
    inner: Some("language_model"),
    ..NAMES
};

pub(crate) const INSIDE: Family = Family {
    names: &INSIDE_VISION_MODEL,
    ..LLAMA
};

/// The language model of Idefics3 and SmolVLM.
pub(crate) const TEXT_MODEL: Family = Family {
    names: &Names {
        inner: Some("text_model"),
        ..NAMES
    },
    ..LLAMA
};

/// Layer norms, a bias at every matrix, and an MLP of two of them: what models after GPT-2 share.
pub(crate) const BIASED: Family = Family {
    attention: Attention {
        qkv_bias: true,
        o_bias: true,
        ..LLAMA.attention
    },
    mlp: Mlp {
        form: MlpForm::Plain,
        bias: true,
        activation: Activation::Gelu,
        ..LLAMA.mlp
    },
    norms: Norms {
        kind: Norm::Layer,
        ..LLAMA.norms
    },
    ..LLAMA
};
