//! The families and what sets each apart.

use super::super::{Build, ModelError, Net, Sizes};
use super::Decoder;
use super::experts::{Common, Mixture, Router};
use super::gemma_vision::{self, Projector};
use super::qwen_vision;
use super::traits::{
    Activation, Dropout, Embedding, Feed, HeadNorms, Names, Norm, Placement, Positions, Projection,
    Scores, Traits, Turn,
};

/// Families by the name the catalogue uses.
pub const FAMILIES: &[(&str, Build)] = &[
    ("llama", |sizes| build(sizes, LLAMA)),
    ("mistral", |sizes| build(sizes, MISTRAL)),
    ("qwen2", |sizes| build(sizes, QWEN2)),
    ("qwen3", |sizes| build(sizes, QWEN3)),
    ("gemma", |sizes| build(sizes, GEMMA)),
    ("gemma2", |sizes| build(sizes, GEMMA2)),
    ("gemma3_text", |sizes| build(sizes, GEMMA3)),
    ("gemma3", |sizes| {
        gemma_vision::build(sizes, GEMMA3_PICTURED, Projector::Pooled)
    }),
    ("granite", |sizes| build(sizes, GRANITE)),
    ("smollm3", |sizes| build(sizes, SMOLLM3)),
    ("olmo", |sizes| build(sizes, OLMO)),
    ("olmo2", |sizes| build(sizes, OLMO2)),
    ("glm", |sizes| build(sizes, GLM)),
    ("cohere", |sizes| build(sizes, COHERE)),
    ("stablelm", |sizes| build(sizes, stablelm(sizes))),
    ("starcoder2", |sizes| build(sizes, STARCODER2)),
    ("phi", |sizes| build(sizes, phi(sizes))),
    ("phi3", |sizes| build(sizes, PHI3)),
    ("gpt_neox", |sizes| build(sizes, GPT_NEOX)),
    ("falcon", |sizes| build(sizes, FALCON)),
    ("gpt_bigcode", |sizes| build(sizes, GPT_BIGCODE)),
    ("gpt_neo", |sizes| build(sizes, GPT_NEO)),
    ("opt", |sizes| build(sizes, opt(sizes))),
    ("gpt_oss", |sizes| build(sizes, GPT_OSS)),
    ("mixtral", |sizes| build(sizes, MIXTRAL)),
    ("olmoe", |sizes| build(sizes, OLMOE)),
    ("qwen2_moe", |sizes| build(sizes, QWEN2_MOE)),
    ("qwen3_moe", |sizes| build(sizes, QWEN3_MOE)),
    ("deepseek_v2", |sizes| build(sizes, DEEPSEEK_V2)),
    ("deepseek_v3", |sizes| build(sizes, DEEPSEEK_V3)),
    ("paligemma", |sizes| {
        gemma_vision::build(sizes, PALIGEMMA, Projector::Linear)
    }),
    ("qwen2_vl", |sizes| {
        qwen_vision::build(sizes, QWEN2_VL, false)
    }),
    ("qwen2_5_vl", |sizes| {
        qwen_vision::build(sizes, QWEN2_VL, true)
    }),
    ("llava", |sizes| super::llava::build(sizes, LLAMA)),
];

pub(super) const LLAMA: Traits = Traits {
    names: &LLAMA_NAMES,
    norms_made_last: true,
    out_made_first: false,
    qkv_bias: false,
    out_bias: false,
    mlp_bias: false,
    head_bias: false,
    projection: Projection::Apart,
    head_norms: HeadNorms::None,
    norm: Norm::Llama,
    placement: Placement::Before,
    embedding: Embedding::Plain,
    positions: Positions::Rotary(Turn::Whole),
    scores: Scores::Library,
    feed: Feed::Gated,
    activation: Activation::Silu,
    soft_caps: false,
    scaled_residuals: false,
    scaled_logits: false,
    full_attention_every: 1,
    idle_mask: false,
    unturned_every: 0,
    mixture: None,
    repeats_keys: false,
    plain_loss: false,
    window: 0,
    dropout: Dropout {
        embeddings: false,
        attention: false,
        inside: false,
        outside: false,
    },
};
const LLAMA_NAMES: Names = Names {
    model: "model",
    inner: None,
    embed: "embed_tokens",
    positions: "embed_positions",
    layers: "layers",
    last_norm: "norm",
    first_norm: "input_layernorm",
    second_norm: "post_attention_layernorm",
    attention: "self_attn",
    joint: "qkv_proj",
    out: "o_proj",
    query_norm: "q_norm",
    key_norm: "k_norm",
    mlp: Some("mlp"),
    up: "up_proj",
    down: "down_proj",
};

const MISTRAL: Traits = Traits {
    repeats_keys: true,
    ..LLAMA
};
const QWEN2: Traits = Traits {
    qkv_bias: true,
    ..LLAMA
};
const QWEN3: Traits = Traits {
    head_norms: HeadNorms::Each,
    ..LLAMA
};
const GRANITE: Traits = Traits {
    embedding: Embedding::Scaled,
    scaled_residuals: true,
    scaled_logits: true,
    ..LLAMA
};
const SMOLLM3: Traits = Traits {
    unturned_every: 4,
    ..LLAMA
};
const OLMO: Traits = Traits {
    norm: Norm::Bare,
    projection: Projection::Together,
    positions: Positions::Rotary(Turn::Wide),
    ..LLAMA
};
const OLMO2: Traits = Traits {
    norm: Norm::Olmo2,
    placement: Placement::After,
    head_norms: HeadNorms::Whole,
    projection: Projection::Together,
    positions: Positions::Rotary(Turn::Wide),
    ..LLAMA
};
const GLM: Traits = Traits {
    qkv_bias: true,
    positions: Positions::Rotary(Turn::PartNeighbours),
    feed: Feed::GatedJoint,
    ..LLAMA
};
const COHERE: Traits = Traits {
    norm: Norm::Cohere,
    placement: Placement::Parallel {
        residual_first: true,
    },
    positions: Positions::Rotary(Turn::WideNeighbours),
    scaled_logits: true,
    ..LLAMA
};
const PHI3: Traits = Traits {
    out_made_first: true,
    projection: Projection::Joint,
    feed: Feed::GatedJoint,
    positions: Positions::Rotary(Turn::PartJoined),
    ..LLAMA
};
const GEMMA: Traits = Traits {
    norm: Norm::Gemma,
    embedding: Embedding::ScaledByTensor,
    activation: Activation::Gelu,
    ..LLAMA
};
const GEMMA2: Traits = Traits {
    placement: Placement::Around,
    soft_caps: true,
    full_attention_every: 2,
    window: 4096,
    ..GEMMA
};
const GEMMA3: Traits = Traits {
    soft_caps: false,
    head_norms: HeadNorms::EachMoved,
    full_attention_every: 6,
    window: 512,
    ..GEMMA2
};
/// A text model inside a larger one.
const INSIDE: Names = Names {
    inner: Some("language_model"),
    ..LLAMA_NAMES
};
const GEMMA3_PICTURED: Traits = Traits {
    names: &INSIDE,
    window: 1024,
    ..GEMMA3
};
const PALIGEMMA: Traits = Traits {
    names: &INSIDE,
    ..GEMMA
};
const QWEN2_VL: Traits = Traits {
    names: &INSIDE,
    projection: Projection::Together,
    ..QWEN2
};

fn stablelm(sizes: &Sizes) -> Traits {
    Traits {
        names: &Names {
            query_norm: "q_layernorm",
            key_norm: "k_layernorm",
            ..LLAMA_NAMES
        },
        norm: Norm::Layer,
        projection: Projection::Together,
        qkv_bias: sizes.is_set("qkv_bias"),
        head_norms: if sizes.is_set("qk_norm") {
            HeadNorms::OneByOne
        } else {
            HeadNorms::None
        },
        placement: if sizes.is_set("parallel") {
            Placement::Parallel {
                residual_first: true,
            }
        } else {
            Placement::BeforeNamed
        },
        positions: Positions::Rotary(Turn::PartNamed),
        ..LLAMA
    }
}

/// The published configurations drop out a tenth everywhere and see windows of 4096 tokens.
const STARCODER2: Traits = Traits {
    names: &Names {
        up: "c_fc",
        down: "c_proj",
        ..LLAMA_NAMES
    },
    norm: Norm::Layer,
    full_attention_every: 0,
    window: 4096,
    dropout: Dropout {
        embeddings: true,
        attention: true,
        inside: true,
        outside: false,
    },
    ..PLAIN
};
/// Every matrix has a bias and the feed-forward is two of them.
const PLAIN: Traits = Traits {
    qkv_bias: true,
    out_bias: true,
    mlp_bias: true,
    norm: Norm::Layer,
    feed: Feed::Plain,
    activation: Activation::Gelu,
    ..LLAMA
};
const PHI: Traits = Traits {
    names: &Names {
        last_norm: "final_layernorm",
        out: "dense",
        up: "fc1",
        down: "fc2",
        ..LLAMA_NAMES
    },
    head_bias: true,
    activation: Activation::GeluNew,
    placement: Placement::Parallel {
        residual_first: false,
    },
    positions: Positions::Rotary(Turn::PartNamed),
    ..PLAIN
};
/// Phi-2 drops out a tenth of what it adds, Phi-1 and 1.5 nothing.
fn phi(sizes: &Sizes) -> Traits {
    Traits {
        dropout: Dropout {
            outside: sizes.is_set("resid_dropout"),
            ..PHI.dropout
        },
        ..PHI
    }
}

const GPT_NEOX: Traits = Traits {
    names: &Names {
        model: "gpt_neox",
        embed: "embed_in",
        last_norm: "final_layer_norm",
        attention: "attention",
        joint: "query_key_value",
        out: "dense",
        up: "dense_h_to_4h",
        down: "dense_4h_to_h",
        ..LLAMA_NAMES
    },
    projection: Projection::ByHead,
    placement: Placement::ParallelApart,
    positions: Positions::Rotary(Turn::Part),
    ..PLAIN
};
const FALCON: Traits = Traits {
    names: &Names {
        model: "transformer",
        embed: "word_embeddings",
        layers: "h",
        last_norm: "ln_f",
        attention: "self_attention",
        joint: "query_key_value",
        out: "dense",
        up: "dense_h_to_4h",
        down: "dense_4h_to_h",
        ..LLAMA_NAMES
    },
    mlp_bias: false,
    placement: Placement::Falcon,
    ..PLAIN
};
/// What GPT-2 called its modules, and those after it.
const GPT2_NAMES: Names = Names {
    model: "transformer",
    embed: "wte",
    positions: "wpe",
    layers: "h",
    last_norm: "ln_f",
    first_norm: "ln_1",
    second_norm: "ln_2",
    attention: "attn",
    joint: "c_attn",
    out: "c_proj",
    up: "c_fc",
    down: "c_proj",
    ..LLAMA_NAMES
};
const GPT_BIGCODE: Traits = Traits {
    plain_loss: true,
    norms_made_last: false,
    names: &GPT2_NAMES,
    projection: Projection::OneKey,
    placement: Placement::BeforeKept,
    positions: Positions::Learned,
    dropout: Dropout {
        embeddings: true,
        attention: true,
        inside: true,
        outside: false,
    },
    ..PLAIN
};
/// The published configurations drop nothing out.
const GPT_NEO: Traits = Traits {
    names: &Names {
        attention: "attn.attention",
        out: "out_proj",
        ..GPT2_NAMES
    },
    norms_made_last: false,
    qkv_bias: false,
    projection: Projection::Together,
    placement: Placement::BeforeKept,
    positions: Positions::Learned,
    scores: Scores::Wide,
    activation: Activation::GeluNew,
    ..PLAIN
};

fn opt(sizes: &Sizes) -> Traits {
    Traits {
        names: &Names {
            inner: Some("decoder"),
            last_norm: "final_layer_norm",
            first_norm: "self_attn_layer_norm",
            second_norm: "final_layer_norm",
            out: "out_proj",
            mlp: None,
            up: "fc1",
            down: "fc2",
            ..LLAMA_NAMES
        },
        norms_made_last: false,
        activation: Activation::Relu,
        placement: if sizes.or("pre_norm", 1) == 0 {
            Placement::AfterSum
        } else {
            Placement::Before
        },
        positions: Positions::Counted,
        projection: Projection::QueryFirst,
        dropout: Dropout {
            embeddings: false,
            attention: false,
            inside: false,
            outside: true,
        },
        ..PLAIN
    }
}

const MIXTRAL: Traits = Traits {
    mixture: Some(Mixture {
        normalised: true,
        router: Router::Wide,
        ..CHOICE
    }),
    ..LLAMA
};
const OLMOE: Traits = Traits {
    head_norms: HeadNorms::Whole,
    projection: Projection::Together,
    mixture: Some(CHOICE),
    ..LLAMA
};
const QWEN2_MOE: Traits = Traits {
    mixture: Some(Mixture {
        shared: Common::Gated,
        ..CHOICE
    }),
    idle_mask: true,
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
    router: Router::Narrow,
    shared: Common::Nothing,
    biased: false,
};
/// Experts have biases, and what passes their gates is clamped.
const GPT_OSS: Traits = Traits {
    qkv_bias: true,
    out_bias: true,
    norm: Norm::Olmo2,
    positions: Positions::Rotary(Turn::Halves),
    scores: Scores::Sinks,
    full_attention_every: 2,
    window: 128,
    mixture: Some(Mixture {
        router: Router::Chosen,
        biased: true,
        ..CHOICE
    }),
    ..LLAMA
};
const DEEPSEEK_V2: Traits = Traits {
    positions: Positions::Rotary(Turn::Complex),
    mixture: Some(Mixture {
        normalised: false,
        router: Router::Groups,
        shared: Common::After,
        biased: false,
    }),
    ..LLAMA
};
const DEEPSEEK_V3: Traits = Traits {
    positions: Positions::Rotary(Turn::Interleaved),
    mixture: Some(Mixture {
        normalised: true,
        router: Router::Sigmoid,
        shared: Common::After,
        biased: false,
    }),
    ..LLAMA
};

fn build(sizes: &Sizes, traits: Traits) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Decoder::new(sizes, traits)?))
}
