//! GLM-4, its newer dense models, GLM-4.5 to 4.7, GLM-4.7-Flash, GLM-5, and the language models of GLM-4.1V to 4.6V
//! (transformers/models/{glm,glm4,glm4_moe,glm4_moe_lite,glm4v,glm4v_moe,glm_moe_dsa}/modeling_*.py).

use super::deepseek::{DEEPSEEK_V3, DEEPSEEK_V32};
use super::llama::{INSIDE_VISION_MODEL, LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, Embeddings, Experts, Family, Indexer, Mlp, MlpForm, Names, Norms, Placement,
    Positions, Projection, QkNorm, Rope, Router, SharedExpert,
};

pub(crate) const GLM: Family = Family {
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialInterleaved),
        ..LLAMA.embeddings
    },
    attention: Attention {
        qkv_bias: true,
        ..LLAMA.attention
    },
    mlp: Mlp {
        form: MlpForm::FusedGated,
        ..LLAMA.mlp
    },
    ..LLAMA
};

/// The largest model has no biases.
pub(crate) fn glm4(sizes: &Sizes) -> Family {
    Family {
        names: &Names {
            further_norms: [
                "post_self_attn_layernorm",
                "post_attention_layernorm",
                "post_mlp_layernorm",
            ],
            ..NAMES
        },
        attention: Attention {
            qkv_bias: sizes.or("qkv_bias", 1) != 0,
            ..GLM.attention
        },
        norms: Norms {
            placement: Placement::PreAndPost,
            ..GLM.norms
        },
        ..GLM
    }
}

/// The larger models have norms over heads.
pub(crate) fn glm4_moe(sizes: &Sizes) -> Family {
    Family {
        embeddings: Embeddings {
            positions: Positions::Rotary(Rope::Partial),
            ..LLAMA.embeddings
        },
        attention: Attention {
            qkv_bias: sizes.or("qkv_bias", 1) != 0,
            projection: Projection::SeparateThenSplit,
            qk_norm: if sizes.is_set("qk_norm") {
                QkNorm::PerHead
            } else {
                QkNorm::None
            },
            ..LLAMA.attention
        },
        mlp: Mlp {
            experts: Some(Experts {
                norm_topk_prob: true,
                router: Router::SigmoidOfGroups,
                shared: SharedExpert::AfterExperts,
                fp32_correction: true,
                ..Experts::PLAIN
            }),
            ..LLAMA.mlp
        },
        ..LLAMA
    }
}

/// DeepSeek V3 with a correction bias in fp32.
pub(crate) const GLM4_MOE_LITE: Family = Family {
    mlp: Mlp {
        experts: Some(Experts {
            norm_topk_prob: true,
            router: Router::SigmoidOfGroups,
            shared: SharedExpert::AfterExperts,
            fp32_correction: true,
            ..Experts::PLAIN
        }),
        ..DEEPSEEK_V3.mlp
    },
    ..DEEPSEEK_V3
};

/// The language model of GLM-4.1V and GLM-4.6V-Flash.
pub(crate) const GLM4V: Family = Family {
    names: &Names {
        inner: Some("language_model"),
        further_norms: [
            "post_self_attn_layernorm",
            "post_attention_layernorm",
            "post_mlp_layernorm",
        ],
        ..NAMES
    },
    embeddings: Embeddings {
        positions: Positions::Rotary(Rope::PartialSectionsInterleaved),
        ..LLAMA.embeddings
    },
    attention: Attention {
        projection: Projection::SeparateThenSplit,
        ..GLM.attention
    },
    norms: Norms {
        placement: Placement::PreAndPost,
        ..GLM.norms
    },
    ..GLM
};

/// The language model of GLM-4.5V and GLM-4.6V.
pub(crate) fn glm4v_moe(sizes: &Sizes) -> Family {
    Family {
        names: &INSIDE_VISION_MODEL,
        embeddings: Embeddings {
            positions: Positions::Rotary(Rope::PartialSections),
            ..LLAMA.embeddings
        },
        ..glm4_moe(sizes)
    }
}

/// DeepSeek V3.2 whose indexer rotates neighbouring elements (GLM-5).
pub(crate) const GLM_MOE_DSA: Family = Family {
    attention: Attention {
        indexer: Some(Indexer::Neighbours),
        ..DEEPSEEK_V32.attention
    },
    ..DEEPSEEK_V32
};
