//! One decoder-only language model with declared differences: Llama and its relatives
//! (transformers/models/llama/modeling_llama.py and those generated from it).

mod attention;
mod experts;
mod falcon;
mod families;
mod feed;
mod gemma_vision;
mod latent;
mod layer;
mod llava;
mod norm;
mod positions;
mod qwen_tower;
mod qwen_vision;
mod rope;
mod router;
mod traits;

use std::cell::RefCell;
use std::rc::Rc;

pub use families::FAMILIES;
use latent::Latent;
pub(in crate::nets) use llava::Llava;
pub(super) use rope::{plain_tables, wide_turned};
use traits::{Embedding, Scores, Traits};

use super::{Cx, ModelError, Net, Output, Sizes, head};
use crate::scenario::{Attention, Data};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

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
    /// Every n-th layer sees the whole sequence.
    full_every: u64,
    /// How much of a head is turned.
    rotary: u64,
    /// How many positions a table of them has.
    places: u64,
    /// The width of the table of tokens, where it is not that of the layers.
    table_width: u64,
    drop_rate: f64,
    /// Falcon's second generation.
    new_block: bool,
    /// Of a mixture: how many experts, how many of them a token passes, and their widths.
    experts: u64,
    chosen: u64,
    expert_ffn: u64,
    shared_ffn: u64,
    /// How many layers at the start are no mixtures.
    dense_layers: u64,
    /// How many groups experts stand in, and how many of them a token chooses from.
    groups: u64,
    top_groups: u64,
    latent: Option<Latent>,
    /// Each token gets a copy of its experts' matrices (`experts_implementation="batched_mm"`).
    batched: bool,
    traits: Traits,
}

pub(super) use attention::{cache, cached};

/// Keys and values a `DynamicCache` holds.
pub(super) type Cache = Option<Rc<RefCell<Vec<Tensor>>>>;

/// What comes with embeddings. What is not given the model makes by itself.
#[derive(Default)]
struct Given<'a> {
    padding: Option<&'a Tensor>,
    /// That of layers that see everything, and that of those that see a window.
    masks: Option<[AttentionMask; 2]>,
    positions: Option<Tensor>,
}

/// What a layer is given.
#[derive(Clone)]
struct Shared {
    mask: AttentionMask,
    /// Cosines and sines of the rotary embedding.
    rope: Option<[Tensor; 2]>,
    cache: Cache,
    /// Used by no layer, but a checkpointed one keeps all it is given: those of text.
    _positions: Option<Tensor>,
}

impl Decoder {
    fn new(sizes: &Sizes, traits: Traits) -> Result<Self, ModelError> {
        let hidden = sizes.need("hidden")?;
        let heads = sizes.need("heads")?.max(1);
        let head_dim = sizes.or("head_dim", hidden / heads);
        Ok(Self {
            layers: sizes.need("layers")?,
            hidden,
            heads,
            kv_heads: sizes.or("kv", heads).max(1),
            head_dim,
            ffn: sizes.need("ffn")?,
            vocab: sizes.need("vocab")?,
            tied: sizes.is_set("tied"),
            window: sizes.or("sliding_window", sizes.or("window", traits.window)),
            full_every: sizes.or("global_every", traits.full_attention_every),
            rotary: Latent::of(sizes).map_or_else(
                || sizes.or("rotary", head_dim).min(head_dim),
                |latent| latent.turned,
            ),
            places: sizes.or("ctx", 2048),
            table_width: sizes.or("proj", hidden),
            drop_rate: 0.1,
            new_block: sizes.is_set("new_block"),
            experts: sizes.or("experts", 8).max(1),
            chosen: sizes.or("topk", 2).max(1),
            expert_ffn: sizes.or("moe_ffn", sizes.or("ffn", 1)),
            shared_ffn: sizes.or("shared_ffn", 0),
            dense_layers: sizes.or("dense_layers", 0),
            groups: sizes.or("groups", 1).max(1),
            top_groups: sizes.or("topk_groups", 1).max(1),
            latent: Latent::of(sizes),
            batched: sizes.is_set("experts_impl=batched_mm"),
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
            return Output::empty(cx);
        };
        let longer = |x: &Tensor| {
            let n = cx.env.training.prompt_tokens;
            if n == 0 {
                return x.clone();
            }
            x.constant("cat", &[x.size(0), x.size(1).saturating_add(n)], x.dtype())
        };
        let (ids, labels) = (&longer(ids), &longer(labels));
        // Where the family's attention is in no library function it is run an operation at a time.
        let attention = cx.env.training.attention;
        let spelled = self.traits.scores != Scores::Library && attention == Attention::Sdpa;
        let changed = spelled.then(|| {
            cx.part(cx.env.weights, |training| {
                training.attention = Attention::Eager;
            })
        });
        let cx = changed.as_ref().unwrap_or(cx);
        let cache = self.cache(cx);
        let name = self.traits.names.model;
        let hidden = cx.within(name, |cx| match self.traits.names.inner {
            Some(inner) => cx.within(inner, |cx| self.model(cx, ids, batch.get(2), &cache)),
            None => self.model(cx, ids, batch.get(2), &cache),
        });
        self.output(cx, &hidden, labels, cache)
    }
}

impl Decoder {
    /// The loss of the last hidden states, and what the output holds besides.
    fn output(&self, cx: &Cx, hidden: &Tensor, labels: &Tensor, cache: Cache) -> Output {
        let mut output = head::loss(
            cx,
            hidden,
            labels,
            self.traits.plain_loss,
            || self.head_weight(cx),
            |hidden| self.head(cx, hidden),
        );
        output
            .held
            .extend(cache.map(|cache| cache.take()).unwrap_or_default());
        output
    }

    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let embeddings = self.embeddings(cx, ids);
        let given = Given {
            padding,
            ..Given::default()
        };
        self.run(cx, embeddings, ids, given, cache)
    }

    /// The model from its input embeddings on.
    fn run(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        ids: &Tensor,
        given: Given,
        cache: &Cache,
    ) -> Tensor {
        let (positions, counted) = match given.positions {
            Some(positions) => (positions, None),
            None => self.positions(ids, given.padding),
        };
        let every = self.full_every;
        let [mask, windowed] = given
            .masks
            .unwrap_or_else(|| self.masks(cx, ids, given.padding, embeddings.dtype()));
        let (start, kept) = self.started(cx, embeddings, &positions);
        let ropes = self.ropes(cx, &positions, start.dtype());
        let unturned = self.traits.unturned_every;
        let period = every.max(unturned).max(1);
        let layer = |state, i: usize| {
            let nth = |every: u64| every > 0 && (i as u64 + 1).is_multiple_of(every);
            let whole = nth(every);
            let shared = Shared {
                mask: if whole { &mask } else { &windowed }.clone(),
                rope: ropes
                    .get(usize::from(!whole && ropes.len() > 1))
                    .filter(|_| !nth(unturned))
                    .cloned(),
                cache: cache.clone(),
                _positions: (positions.shape().len() == 2).then(|| positions.clone()),
            };
            let mut this = *self;
            if (i as u64) < self.dense_layers {
                this.traits.mixture = None;
            }
            cx.layer(self.traits.names.layers, i, state, move |cx, state| {
                let layer = |hidden| this.layer(cx, hidden, &shared);
                state.iter().map(layer).collect()
            })
        };
        let dense = self.dense_layers.min(self.layers) as usize;
        let state = (0..dense).fold(vec![start.clone()], &layer);
        let rest = self.layers - dense as u64;
        let state = cx.periodic_layers(rest, period, state, |state, i| layer(state, dense + i));
        let last = state.first().map(|hidden| self.ended(cx, hidden));
        drop((mask, windowed, ropes, positions, counted, kept));
        last.unwrap_or(start)
    }

    /// Embeddings of the tokens, behind those of a learned prompt where the run has one
    /// (`PeftModelForCausalLM.forward` of PEFT, `get_prompt`).
    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let prompt = cx.env.training.prompt_tokens;
        if prompt == 0 {
            return self.word_embeddings(cx, ids);
        }
        let words = ids.narrow(1, ids.size(1).saturating_sub(prompt));
        let words = self.word_embeddings(cx, &words);
        let table = cx.within("prompt_encoder", |cx| {
            cx.param_as("weight", [prompt, self.hidden], DType::F32, |_| true)
        });
        let learned = table.tensor().to(words.dtype()).unsqueeze(0).expand(&[
            words.size(0),
            prompt,
            self.hidden,
        ]);
        Tensor::cat(&learned, &[&words], 1)
    }

    fn word_embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let name = self.traits.names.embed;
        match self.traits.embedding {
            Embedding::Plain => cx.input_embedding(name, ids, self.vocab, self.table_width),
            Embedding::Scaled => cx
                .input_embedding(name, ids, self.vocab, self.hidden)
                .then(Tensor::scale),
            Embedding::ScaledByTensor => cx.scaled_embedding(name, ids, self.vocab, self.hidden),
        }
    }

    /// The norm after the last layer, and OPT's projection to the width of its table.
    fn ended(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let narrower = self.table_width != self.hidden;
        let normed = match self.traits.placement {
            traits::Placement::AfterSum => hidden.clone(),
            _ => self.norm(cx, self.traits.names.last_norm, hidden),
        };
        if narrower {
            cx.linear("project_out", &normed, self.table_width, false)
        } else {
            normed
        }
    }

    /// The matrix of the head as a loss that multiplies by itself takes it.
    fn head_weight(&self, cx: &Cx) -> Tensor {
        let weight = |cx: &Cx| cx.param("weight", [self.vocab, self.table_width]).tensor();
        if !self.tied {
            return cx.within("lm_head", weight);
        }
        let names = self.traits.names;
        cx.within(names.model, |cx| match names.inner {
            Some(inner) => cx.within(inner, |cx| cx.within(names.embed, weight)),
            None => cx.within(names.embed, weight),
        })
    }

    fn head(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let logits = if self.tied {
            let weight = self.head_weight(cx);
            cx.within("lm_head", |cx| {
                drop(cx.tied_later([self.vocab, self.table_width]));
            });
            cx.tied_linear("lm_head", hidden, &weight)
        } else {
            cx.linear("lm_head", hidden, self.vocab, self.traits.head_bias)
        };
        if self.traits.soft_caps {
            logits
                .then(Tensor::scale)
                .then(Tensor::tanh)
                .then(Tensor::scale)
        } else if self.traits.scaled_logits {
            logits.then(Tensor::scale)
        } else {
            logits
        }
    }
}

#[cfg(test)]
mod tests;
