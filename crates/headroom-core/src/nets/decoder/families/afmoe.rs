//! Arcee's mixtures, Trinity (transformers/models/afmoe/modeling_afmoe.py): attention behind a gate, windows with rotation, full
//! attention without, norms before and behind each part.

use super::llama::{LLAMA, NAMES};
use crate::nets::Sizes;
use crate::nets::decoder::family::{
    Attention, EmbeddingScale, Embeddings, Experts, Family, Mlp, Names, Norm, Norms, Placement,
    Projection, QkNorm, Router, SharedExpert,
};
use crate::nets::inputs::MaskRules;

/// `mup_enabled` scales the embeddings.
pub(crate) fn afmoe(sizes: &Sizes) -> Family {
    let interval = sizes.or("global_every", 4);
    Family {
        names: &Names {
            further_norms: [
                "post_attention_layernorm",
                "pre_mlp_layernorm",
                "post_mlp_layernorm",
            ],
            ..NAMES
        },
        embeddings: Embeddings {
            scale: if sizes.is_set("mup") {
                EmbeddingScale::NumberBeside
            } else {
                EmbeddingScale::None
            },
            ..LLAMA.embeddings
        },
        attention: Attention {
            projection: Projection::GatedBeside,
            qk_norm: QkNorm::PerHead,
            full_attention_interval: interval,
            no_rope_interval: interval,
            sliding_window: 1024,
            mask: MaskRules {
                probed: false,
                always: false,
            },
            ..LLAMA.attention
        },
        mlp: Mlp {
            experts: Some(Experts {
                router: Router::SigmoidOfBlock,
                shared: SharedExpert::BehindRouter,
                ..Experts::PLAIN
            }),
            ..LLAMA.mlp
        },
        norms: Norms {
            kind: Norm::Olmo2,
            placement: Placement::PreAndPost,
            ..LLAMA.norms
        },
        ..LLAMA
    }
}
