//! One decoder-only language model with declared differences: Llama and its relatives
//! (transformers/models/llama/modeling_llama.py and those generated from it).

mod attention;
mod families;
mod rope;

use std::cell::RefCell;
use std::rc::Rc;

pub use families::FAMILIES;

use super::losses::causal_lm_loss;
use super::{Cx, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

/// What sets a family apart from Llama.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    /// The query, key and value projections have a bias.
    qkv_bias: bool,
    out_bias: bool,
    /// An RMS norm over each head of queries and keys.
    head_norms: bool,
    /// Query, key and value are one projection; so are gate and up.
    fused: bool,
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
    traits: Traits,
}

/// Keys and values a `DynamicCache` holds.
type Cache = Option<Rc<RefCell<Vec<Tensor>>>>;

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
        let logits = self.head(cx, &hidden);
        let loss = cx.within("loss", |_| causal_lm_loss(&logits, labels));
        let mut held = vec![logits];
        held.extend(cache.map(|cache| cache.take()).unwrap_or_default());
        Output { loss, held }
    }
}

impl Decoder {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let embeddings = cx.input_embedding("embed_tokens", ids, self.vocab, self.hidden);
        let positions = super::inputs::positions(ids);
        let mask = super::inputs::causal_mask(cx, ids, padding, embeddings.dtype());
        let rope = rope::tables(cx, &positions, self.head_dim, embeddings.dtype());
        let shared = Shared {
            mask,
            rope,
            cache: cache.clone(),
            _positions: positions,
        };
        let (this, given) = (*self, shared.clone());
        let state = vec![embeddings.clone()];
        let hidden = cx.layers("layers", self.layers, state, move |cx, state, _| {
            state
                .iter()
                .map(|hidden| this.layer(cx, hidden, &given))
                .collect()
        });
        let normed = hidden.first().map(|hidden| cx.rms_norm("norm", hidden));
        normed.unwrap_or(embeddings)
    }

    fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let mut hidden = cx.rms_norm("input_layernorm", input);
        hidden = cx.within("self_attn", |cx| self.attention(cx, &hidden, shared));
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        hidden = cx.rms_norm("post_attention_layernorm", &hidden);
        hidden = cx.within("mlp", |cx| self.mlp(cx, &hidden));
        residual.add(&hidden)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let product = if self.traits.fused {
            let both = cx.linear("gate_up_proj", x, 2 * self.ffn, false);
            let mut halves = both.chunk(2, -1);
            drop(both);
            let (Some(up), Some(gate)) = (halves.pop(), halves.pop()) else {
                return x.clone();
            };
            let product = gate.silu().then(|gate| up.mul(gate));
            return cx.linear("down_proj", &product, self.hidden, false);
        } else {
            let gate = cx
                .linear("gate_proj", x, self.ffn, false)
                .then(Tensor::silu);
            let up = cx.linear("up_proj", x, self.ffn, false);
            gate.mul(&up)
        };
        cx.linear("down_proj", &product, self.hidden, false)
    }

    fn head(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        if self.tied {
            let table = cx.within("model", |cx| {
                cx.within("embed_tokens", |cx| {
                    cx.param("weight", [self.vocab, self.hidden])
                })
            });
            cx.within("lm_head", |_| hidden.linear(&table.tensor(), None))
        } else {
            cx.linear("lm_head", hidden, self.vocab, false)
        }
    }
}
