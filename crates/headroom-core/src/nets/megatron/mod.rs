//! Megatron-Core's `GPTModel` (megatron/core/models/gpt/gpt_model.py), tokens first: its local layer specification, and that of
//! Transformer Engine, its default.

mod layer;
mod moe;

use super::{Cx, ModelError, Net, Output, Plan, Sizes};
use crate::tape::ops::{EmptyGradients, MemoryBuffer, Tokens, WeightGradient};
use crate::tape::{DType, Tensor};
use headroom_base::units::RoundUp;
use headroom_scenario::{Data, LossKernel};

/// `TransformerConfig`, as far as its memory depends on it.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of Megatron's own, given by itself"
)]
struct GptModel {
    layers: u64,
    hidden: u64,
    heads: u64,
    query_groups: u64,
    channels: u64,
    ffn: u64,
    vocab: u64,
    /// Experts of a layer, none for an MLP, and how many a token passes.
    experts: u64,
    topk: u64,
    /// `--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear`; else GPT-2's kind.
    is_llama: bool,
    /// `--add-qkv-bias`.
    qkv_bias: bool,
    /// `--qk-layernorm`.
    qk_norm: bool,
    /// `--untie-embeddings-and-output-weights`.
    untied: bool,
    dropout: f64,
    /// `DotProductAttention` in plain operations, else one fused kernel.
    plain_attention: bool,
    /// `--recompute-granularity selective`.
    recomputes_attention: bool,
    /// `--no-gradient-accumulation-fusion` was not given.
    fuses_accumulation: bool,
    buffer: MemoryBuffer,
    /// `--transformer-impl transformer_engine`: its layers' linear modules, with the empty gradients that they share.
    engine: Option<EmptyGradients>,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let heads = sizes.need("heads")?.max(1);
    Ok(Box::new(GptModel {
        layers: sizes.need("layers")?,
        hidden,
        heads,
        query_groups: sizes.or("kv", heads).clamp(1, heads),
        channels: sizes.or("head_dim", hidden / heads),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        vocab: sizes.need("vocab")?,
        experts: sizes.or("experts", 0),
        topk: sizes.or("topk", 2).max(1),
        is_llama: !sizes.is_set("gpt"),
        qkv_bias: sizes.is_set("qkv_bias"),
        qk_norm: sizes.is_set("qk_norm"),
        untied: !sizes.is_set("shares_embeddings"),
        dropout: if sizes.is_set("drops") { 0.1 } else { 0.0 },
        plain_attention: sizes.is_set("plain_attention"),
        recomputes_attention: sizes.is_set("recompute_core_attention"),
        fuses_accumulation: !sizes.is_set("separate_accumulation"),
        buffer: MemoryBuffer::default(),
        engine: sizes
            .is_set("transformer_engine")
            .then(EmptyGradients::default),
    }))
}

impl Net for GptModel {
    /// `get_batch_on_this_tp_rank`: tokens, positions, labels, the loss's mask, and where attention is not fused its own.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let tokens = cx.tokens_of(data.sequence);
        let shape = [data.micro_batch, tokens];
        let empty = |name, dtype| cx.tape.empty(name, shape, dtype);
        let mut all = vec![
            empty("tokens", DType::I64),
            empty("position_ids", DType::I64),
            empty("labels", DType::I64),
            empty("loss_mask", DType::F32),
        ];
        if self.plain_attention {
            let mask = cx
                .tape
                .empty("attention_mask", [1, 1, tokens, tokens], DType::Bool);
            all.push(mask);
        }
        all
    }

    /// Modules split their own weights.
    fn tensor_plan(&self, _divides_experts: bool) -> Option<Plan> {
        Some(&[])
    }

    fn has_stages(&self) -> bool {
        true
    }

    fn is_megatron_core(&self) -> bool {
        true
    }

    fn supports_context_parallel(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [tokens, positions, labels, loss_mask, rest @ ..] = batch else {
            return Output::empty(cx);
        };
        let rope = self.is_llama.then(|| {
            cx.for_every_stage(|| {
                let count = tokens.size(1);
                cx.buffer("rotary_pos_emb", [count, 1, 1, self.channels], DType::F32)
            })
        });
        let mut hidden = cx.module("embedding", |cx| self.embedding(cx, tokens, positions));
        let this = self.clone();
        let mask = rest.first().cloned();
        let state = cx.equal_layers("layers", self.layers, vec![hidden], move |cx, state| {
            let layer = |x: &Tensor| this.layer(cx, x, rope.as_ref(), mask.as_ref());
            state.iter().map(layer).collect()
        });
        let Some(last) = state.into_iter().next() else {
            return Output::empty(cx);
        };
        hidden = last;
        hidden = self.norm(cx, "final_layernorm", &hidden);
        let weight = if self.untied {
            cx.module("output_layer", |cx| {
                cx.param("weight", [self.own_vocab(cx), self.hidden])
                    .tensor()
            })
        } else {
            cx.module("embedding", |cx| self.table(cx))
        };
        let logits = hidden.pipe(|hidden| {
            // Its own layer whatever computes the others.
            let tokens = Self::tokens(cx, Some(self.buffer.clone()));
            hidden.linear_accumulating(&weight, None, &tokens, &self.accumulation())
        });
        let loss = cx.module("loss", |_| {
            let turned = labels.transpose(0, 1).contiguous();
            let losses = if cx.env.training.loss == LossKernel::Liger {
                // `--cross-entropy-loss-fusion --cross-entropy-fusion-impl te`.
                logits.cross_entropy_in_place(&turned, Self::group(cx))
            } else {
                logits.vocab_parallel_cross_entropy(&turned)
            };
            drop((turned, logits));
            let losses = losses.pipe(|losses| losses.transpose(0, 1).contiguous());
            let masked = losses.mul(loss_mask);
            masked
                .pipe(|masked| masked.sum(&[0, 1]))
                .pipe(Tensor::mul_scalar)
        });
        Output {
            loss,
            held: Vec::new(),
        }
    }
}

impl GptModel {
    fn group(cx: &Cx) -> u64 {
        cx.env.groups.tensor.group.max(1)
    }

    /// The vocabulary is padded to a multiple of 128 for each GPU.
    fn own_vocab(&self, cx: &Cx) -> u64 {
        let group = Self::group(cx);
        self.vocab.round_up(128_u64.saturating_mul(group)) / group
    }

    fn table(&self, cx: &Cx) -> Tensor {
        cx.module("word_embeddings", |cx| {
            cx.param("weight", [self.own_vocab(cx), self.hidden])
                .tensor()
        })
    }

    /// Whether norms and residuals see a part of the tokens (`--sequence-parallel`).
    fn splits_tokens(cx: &Cx) -> bool {
        cx.env.groups.tensor.sequence && Self::group(cx) > 1
    }

    /// The tokens of a column-parallel layer's input.
    fn tokens(cx: &Cx, buffer: Option<MemoryBuffer>) -> Tokens {
        if Self::splits_tokens(cx) {
            Tokens::Parts {
                group: Self::group(cx),
                buffer,
            }
        } else {
            Tokens::All
        }
    }

    /// Where gradients of weights go that Megatron-Core multiplies by itself.
    fn accumulation(&self) -> WeightGradient {
        if self.fuses_accumulation {
            WeightGradient::Accumulated
        } else {
            WeightGradient::Returned
        }
    }

    /// Where those of a layer's weights go.
    fn layer_gradient(&self) -> WeightGradient {
        match &self.engine {
            Some(shared) if self.fuses_accumulation => WeightGradient::Shared(shared.clone()),
            _ => self.accumulation(),
        }
    }

    /// `LanguageModelEmbedding`.
    fn embedding(&self, cx: &Cx, tokens: &Tensor, positions: &Tensor) -> Tensor {
        let (group, splits) = (Self::group(cx), Self::splits_tokens(cx));
        let table = self.table(cx);
        let mut found = if group > 1 {
            table.embedding_of_part(tokens)
        } else {
            table.embedding(tokens)
        };
        let tokens_first = |x: Tensor| x.pipe(|x| x.transpose(0, 1).contiguous());
        if self.is_llama {
            found = tokens_first(found);
            if splits {
                found = found.pipe(|found| found.reduce_scatter(group, 0));
            }
        } else {
            let count = tokens.size(1);
            let places = cx.module("position_embeddings", |cx| {
                cx.param("weight", [count, self.hidden]).tensor()
            });
            let places = places.embedding(positions);
            found = found.add(&places);
            drop(places);
            found = tokens_first(found);
            if splits {
                found = found.pipe(|found| found.narrow(0, found.size(0) / group).cloned());
            }
        }
        found.pipe(|found| found.dropout(self.rate(cx)))
    }

    fn rate(&self, cx: &Cx) -> f64 {
        cx.rate(self.dropout)
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        cx.module(name, |cx| {
            let width = x.size(-1);
            let weight = cx.param("weight", [width]).tensor();
            if self.is_llama {
                return x.fused_rms_norm(&weight);
            }
            let bias = cx.param("bias", [width]).tensor();
            x.layer_norm(Some(&weight), Some(&bias))
        })
    }
}
