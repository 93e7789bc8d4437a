//! One decoder-only language model with declared differences: Llama and its relatives
//! (transformers/models/llama/modeling_llama.py and those generated from it).

mod attention;
mod experts;
mod families;
mod llava;
mod rope;

use std::cell::RefCell;
use std::rc::Rc;

use experts::Mixture;
pub use families::FAMILIES;

use super::{Cx, Net, Output, Sizes, head};
use crate::scenario::{Data, Kernels};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// What sets a family apart from Llama.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a published model.
struct Traits {
    /// The query, key and value projections have a bias.
    qkv_bias: bool,
    out_bias: bool,
    /// An RMS norm over each head of queries and keys.
    head_norms: bool,
    /// One over all heads of the projection together.
    whole_norms: bool,
    /// Query, key and value are one projection; so are gate and up.
    fused: bool,
    norm: Norm,
    placement: Placement,
    /// Embeddings are multiplied by a number that is a tensor.
    scaled_embeddings: bool,
    /// The activation of the gate is GELU, not SiLU.
    gelu: bool,
    /// Attention scores (where they exist) and logits pass through tanh.
    soft_caps: bool,
    /// Layers alternate between windows and whole sequences: every n-th sees it whole.
    full_attention_every: u64,
    mixture: Option<Mixture>,
    /// The tokens a window holds where the model names no other number.
    window: u64,
}

/// How a norm is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Norm {
    /// fp32 inside, the weight applied in the input's type.
    #[default]
    Llama,
    /// fp32 to the end, the weight moved by one.
    Gemma,
}

/// Where a layer's norms stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Placement {
    #[default]
    Before,
    /// Before and after attention and feed-forward.
    Around,
}

#[derive(Clone, Copy, Debug)]
struct Decoder {
    layers: u64,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    ffn: u64,
    vocab: u64,
    tied: bool,
    window: u64,
    /// Of a mixture: how many experts, how many of them a token passes, and their widths.
    experts: u64,
    chosen: u64,
    expert_ffn: u64,
    shared_ffn: u64,
    traits: Traits,
}

pub(super) use attention::cached;

/// Keys and values a `DynamicCache` holds.
pub(super) type Cache = Option<Rc<RefCell<Vec<Tensor>>>>;

/// What all layers are given.
#[derive(Clone)]
struct Shared {
    mask: AttentionMask,
    /// Cosines and sines of the rotary embedding.
    rope: [Tensor; 2],
    cache: Cache,
    /// Used by no layer, but a checkpointed one keeps all it is given.
    _positions: Tensor,
}

impl Decoder {
    fn new(sizes: &Sizes, traits: Traits) -> Result<Self, String> {
        let hidden = sizes.need("hidden")?;
        let heads = sizes.need("heads")?.max(1);
        Ok(Self {
            layers: sizes.need("layers")?,
            hidden,
            heads,
            kv_heads: sizes.or("kv", heads).max(1),
            head_dim: sizes.or("head_dim", hidden / heads),
            ffn: sizes.need("ffn")?,
            vocab: sizes.need("vocab")?,
            tied: sizes.is_set("tied"),
            window: sizes.or("sliding_window", traits.window),
            experts: sizes.or("experts", 8).max(1),
            chosen: sizes.or("topk", 2).max(1),
            expert_ffn: sizes.or("moe_ffn", sizes.or("ffn", 1)),
            shared_ffn: sizes.or("shared_ffn", 0),
            traits,
        })
    }
}

impl Net for Decoder {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::nothing(cx);
        };
        let cache = cx.env.training.use_cache.then(Rc::default);
        let hidden = cx.within("model", |cx| self.model(cx, ids, batch.get(2), &cache));
        let mut output = head::loss(
            cx,
            &hidden,
            labels,
            || self.head_weight(cx),
            |hidden| self.head(cx, hidden),
        );
        output
            .held
            .extend(cache.map(|cache| cache.take()).unwrap_or_default());
        output
    }
}

impl Decoder {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let embeddings = self.embeddings(cx, ids);
        self.run(cx, embeddings, ids, padding, cache)
    }

    /// The model from its input embeddings on.
    fn run(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        ids: &Tensor,
        padding: Option<&Tensor>,
        cache: &Cache,
    ) -> Tensor {
        let positions = super::inputs::positions(ids);
        let mask = super::inputs::causal_mask(cx, ids, padding, embeddings.dtype());
        let windowed = if self.traits.full_attention_every > 1 {
            let window = Some(self.window);
            super::inputs::windowed_mask(cx, ids, padding, embeddings.dtype(), window)
        } else {
            mask.clone()
        };
        let rope = rope::tables(cx, &positions, self.head_dim, embeddings.dtype());
        let every = self.traits.full_attention_every.max(1);
        let state = cx.periodic_layers(self.layers, every, vec![embeddings.clone()], |state, i| {
            let mask = if (i as u64 + 1).is_multiple_of(every) {
                &mask
            } else {
                &windowed
            };
            let shared = Shared {
                mask: mask.clone(),
                rope: rope.clone(),
                cache: cache.clone(),
                _positions: positions.clone(),
            };
            let this = *self;
            cx.layer("layers", i, state, move |cx, state| {
                let layer = |hidden| this.layer(cx, hidden, &shared);
                state.iter().map(layer).collect()
            })
        });
        let normed = state.first().map(|hidden| self.norm(cx, "norm", hidden));
        drop((mask, windowed, rope, positions));
        normed.unwrap_or(embeddings)
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let name = "embed_tokens";
        if !self.traits.scaled_embeddings {
            return cx.input_embedding(name, ids, self.vocab, self.hidden);
        }
        let found = cx.embedding(name, ids, self.vocab, self.hidden);
        let factor = cx.within(name, |cx| cx.buffer("embed_scale", [0; 0], cx.env.weights));
        cx.asks_for_gradient(found.mul(&factor))
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        match self.traits.norm {
            Norm::Llama => cx.rms_norm(name, x),
            Norm::Gemma => cx.within(name, |cx| {
                gemma_norm(x, &cx.param("weight", [x.size(-1)]).tensor())
            }),
        }
    }

    fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let around = self.traits.placement == Placement::Around;
        let mut hidden = self.norm(cx, "input_layernorm", input);
        // Eager attention hands its weights out too, and the layer keeps them to its end.
        let (attended, weights) = cx.within("self_attn", |cx| self.attention(cx, &hidden, shared));
        hidden = attended;
        if around {
            hidden = self.norm(cx, "post_attention_layernorm", &hidden);
        }
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        let before = if around {
            "pre_feedforward_layernorm"
        } else {
            "post_attention_layernorm"
        };
        hidden = self.norm(cx, before, &hidden);
        hidden = cx.within("mlp", |cx| self.mlp(cx, &hidden));
        if around {
            hidden = self.norm(cx, "post_feedforward_layernorm", &hidden);
        }
        hidden = residual.add(&hidden);
        drop(weights);
        hidden
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if let Some(kind) = self.traits.mixture {
            return self.mixture(cx, x, kind);
        }
        if !self.traits.fused {
            return self.gated_mlp(cx, x, self.ffn);
        }
        let both = cx.linear("gate_up_proj", x, 2 * self.ffn, false);
        let mut halves = both.chunk(2, -1);
        drop(both);
        let (Some(up), Some(gate)) = (halves.pop(), halves.pop()) else {
            return x.clone();
        };
        let product = self.activation(&gate).then(|gate| up.mul(gate));
        cx.linear("down_proj", &product, self.hidden, false)
    }

    fn gated_mlp(&self, cx: &Cx, x: &Tensor, width: u64) -> Tensor {
        let product = {
            let mut gate = cx.linear("gate_proj", x, width, false);
            if cx.env.training.kernels == Kernels::Liger {
                let up = cx.linear("up_proj", x, width, false);
                gate.silu_mul_liger(&up)
            } else {
                gate = gate.then(|gate| self.activation(gate));
                let up = cx.linear("up_proj", x, width, false);
                gate.mul(&up)
            }
        };
        cx.linear("down_proj", &product, self.hidden, false)
    }

    fn activation(&self, x: &Tensor) -> Tensor {
        if self.traits.gelu { x.gelu() } else { x.silu() }
    }

    /// The matrix of the head as a loss that multiplies by itself takes it.
    fn head_weight(&self, cx: &Cx) -> Tensor {
        let weight = |cx: &Cx| cx.param("weight", [self.vocab, self.hidden]).tensor();
        if self.tied {
            cx.within("model", |cx| cx.within("embed_tokens", weight))
        } else {
            cx.within("lm_head", weight)
        }
    }

    fn head(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let logits = if self.tied {
            let weight = self.head_weight(cx);
            cx.within("lm_head", |_| hidden.linear(&weight, None))
        } else {
            cx.linear("lm_head", hidden, self.vocab, false)
        };
        if self.traits.soft_caps {
            logits
                .then(Tensor::scale)
                .then(Tensor::tanh)
                .then(Tensor::scale)
        } else {
            logits
        }
    }
}

/// `Gemma2RMSNorm.forward`.
fn gemma_norm(x: &Tensor, weight: &Tensor) -> Tensor {
    let wide = x.to(DType::F32);
    let scale = wide
        .pow()
        .then(|squares| squares.mean(&[-1]))
        .then(Tensor::shift)
        .then(Tensor::rsqrt);
    let normed = wide.mul(&scale);
    drop((scale, wide));
    let factor = weight.to(DType::F32).then(Tensor::shift);
    let mut output = normed.mul(&factor);
    drop((normed, factor));
    output = output.to(x.dtype());
    output
}

#[cfg(test)]
mod tests;
