//! GTE and Jina Embeddings v3 (transformers/models/{gte,jina_embeddings_v3}/modeling_*.py): encoders with rotary positions and
//! norms behind each sum.

use super::attention::{Eager, attend, heads};
use super::decoder::{full_tables, rotate_half, rotated};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// `hidden_dropout_prob` of both.
const DROPOUT: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Architecture {
    /// A gated MLP, no dropout on attention, a pooler before the classes.
    Gte,
    /// RoBERTa's MLP and heads.
    Jina,
}

#[derive(Clone, Copy, Debug)]
struct Gte {
    architecture: Architecture,
    config: Config,
    head_dim: u64,
    /// Zero without embeddings of token types.
    types: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Gte)
}

pub(crate) fn jina(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Jina)
}

fn build_as(sizes: &Sizes, architecture: Architecture) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Box::new(Gte {
        architecture,
        head_dim: sizes.or("head_dim", config.hidden / config.heads),
        types: sizes.or("types", 1),
        config,
    }))
}

impl Net for Gte {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = self.encode(cx, ids, batch.get(2));
        encoder::output(cx, self.lm_head(cx, &sequence), labels)
    }
}

impl TextEncoder for Gte {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module(self.prefix(), |cx| self.model(cx, ids, padding))
    }

    fn unread(&self, cx: &Cx) {
        if self.architecture == Architecture::Jina {
            cx.module(self.prefix(), |cx| {
                cx.module("pooler", |cx| {
                    encoder::unread_dense(cx, "dense", self.config.hidden);
                });
            });
        }
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        if self.architecture == Architecture::Jina {
            return encoder::classification_head(cx, hidden, classes);
        }
        let pooled = cx.module(self.prefix(), |cx| {
            cx.module("pooler", |cx| encoder::pooler(cx, "dense", hidden))
        });
        let dropped = cx.dropout(&pooled, DROPOUT);
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl Gte {
    fn prefix(&self) -> &'static str {
        match self.architecture {
            Architecture::Gte => "gte",
            Architecture::Jina => "roberta",
        }
    }

    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let positions = ids
            .constant("arange", &[ids.size(1)], DType::I64)
            .unsqueeze(0);
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids));
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let names = ["inv_freq", "original_inv_freq"];
        let tables = full_tables(cx, &positions, self.head_dim, embedded.dtype(), names);
        let this = *self;
        let layer = move |cx: &Cx, hidden: &Tensor| this.layer(cx, hidden, &mask, &tables);
        let last = cx.equal_stack("layers", self.config.layers, embedded.clone(), layer);
        drop((embedded, positions));
        last
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        if self.architecture == Architecture::Jina {
            for name in ["position_ids", "token_type_ids"] {
                cx.buffer(name, [1, positions], DType::I64);
            }
        }
        let mut embeddings = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let mut held = Vec::new();
        if self.types > 0 {
            let types = ids.constant("zeros", ids.shape(), DType::I64);
            let kinds = cx.embedding("token_type_embeddings", &types, self.types, hidden);
            embeddings = embeddings.add(&kinds);
            held.push(types);
            // A variable of Jina's function, a temporary of GTE's.
            if self.architecture == Architecture::Jina {
                held.push(kinds);
            }
        }
        embeddings = cx.layer_norm("LayerNorm", &embeddings);
        let dropped = cx.dropout(&embeddings, DROPOUT);
        drop(held);
        dropped
    }

    /// `GteLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, tables: &[Tensor; 2]) -> Tensor {
        let (attended, weights) =
            cx.module("self_attn", |cx| self.attention(cx, input, mask, tables));
        let mut hidden = cx
            .dropout(&attended, DROPOUT)
            .pipe(|dropped| input.add(dropped));
        hidden = cx.layer_norm("post_attention_layernorm", &hidden);
        let residual = hidden.clone();
        hidden = cx.module("mlp", |cx| self.mlp(cx, &hidden));
        hidden = cx
            .dropout(&hidden, DROPOUT)
            .pipe(|dropped| residual.add(dropped));
        hidden = cx.layer_norm("post_mlp_layernorm", &hidden);
        drop((attended, weights));
        hidden
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let Config { hidden, ffn, .. } = self.config;
        if self.architecture == Architecture::Jina {
            let mut inner = cx.linear("fc1", x, ffn, true);
            inner = inner.gelu();
            return cx.linear("fc2", &inner, hidden, true);
        }
        let mut product = {
            let mut gate = cx.linear("gate_proj", x, ffn, false);
            gate = gate.gelu();
            let up = cx.linear("up_proj", x, ffn, false);
            gate.mul(&up)
        };
        product = cx.dropout(&product, DROPOUT);
        cx.linear("down_proj", &product, hidden, true)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        mask: &AttentionMask,
        tables: &[Tensor; 2],
    ) -> (Tensor, Option<Tensor>) {
        let Config {
            hidden, heads: h, ..
        } = self.config;
        let width = h * self.head_dim;
        let [mut q, mut k, v] =
            ["q_proj", "k_proj", "v_proj"].map(|name| heads(&cx.linear(name, x, width, true), h));
        let tables = tables.each_ref().map(|table| table.unsqueeze(1));
        [q, k] = [&q, &k].map(|x| rotated(x, &tables, rotate_half));
        let dropout = match self.architecture {
            Architecture::Gte => 0.0,
            Architecture::Jina => DROPOUT,
        };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, dropout, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), width]);
        (cx.linear("o_proj", &out, hidden, true), weights)
    }

    /// `GteLMHead`, whose decoder is tied to the word embeddings and has a bias of its own.
    fn lm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = [self.prefix(), "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("lm_head", |cx| {
            let bias = cx.param("bias", [vocab]).tensor();
            let mut x = cx.linear("dense", sequence, hidden, true);
            x = x.gelu();
            x = cx.layer_norm("layer_norm", &x);
            drop(cx.weight_until_tied([vocab, hidden]));
            x.linear(&weight, Some(&bias))
        })
    }
}
