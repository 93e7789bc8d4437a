//! Nomic BERT: an encoder with rotary positions and gated MLPs, without biases
//! (transformers/models/nomic_bert/modeling_nomic_bert.py).

use super::attention::{Eager, attend, heads};
use super::decoder::{full_tables, rotate_half, rotated};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct NomicBert {
    config: Config,
    head_dim: u64,
    types: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Box::new(NomicBert {
        head_dim: sizes.or("head_dim", config.hidden / config.heads),
        types: sizes.or("types", 2),
        config,
    }))
}

impl Net for NomicBert {
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
        encoder::output(cx, self.mlm_head(cx, &sequence), labels)
    }
}

impl TextEncoder for NomicBert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("nomic_bert", |cx| self.model(cx, ids, padding))
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let pooled = cx.module("nomic_bert", |cx| {
            cx.module("pooler", |cx| encoder::pooler(cx, "dense", hidden))
        });
        cx.linear("classifier", &pooled, classes, true)
    }

    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        cx.linear("classifier", hidden, classes, true)
    }
}

impl NomicBert {
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
        for name in ["position_ids", "token_type_ids"] {
            cx.buffer(name, [1, positions], DType::I64);
        }
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let types = ids.constant("zeros", ids.shape(), DType::I64);
        let kinds = cx.embedding("token_type_embeddings", &types, self.types, hidden);
        let sum = words.add(&kinds);
        cx.layer_norm("LayerNorm", &sum)
    }

    /// `NomicBertLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, tables: &[Tensor; 2]) -> Tensor {
        let (attended, _weights) =
            cx.module("self_attn", |cx| self.attention(cx, input, mask, tables));
        let mut hidden = input.add(&attended);
        hidden = cx.layer_norm("post_attention_layernorm", &hidden);
        let residual = hidden.clone();
        hidden = cx.module("mlp", |cx| {
            let gate = cx
                .linear("gate_proj", &hidden, self.config.ffn, false)
                .pipe(Tensor::silu);
            let up = cx.linear("up_proj", &hidden, self.config.ffn, false);
            let product = gate.mul(&up);
            drop((gate, up));
            cx.linear("down_proj", &product, self.config.hidden, false)
        });
        hidden = residual.add(&hidden);
        let out = cx.layer_norm("post_mlp_layernorm", &hidden);
        drop(attended);
        out
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
            ["q_proj", "k_proj", "v_proj"].map(|name| heads(&cx.linear(name, x, width, false), h));
        let tables = tables.each_ref().map(|table| table.unsqueeze(1));
        [q, k] = [&q, &k].map(|x| rotated(x, &tables, rotate_half));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), width]);
        (cx.linear("o_proj", &out, hidden, false), weights)
    }

    /// `NomicBertOnlyMLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["nomic_bert", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("cls", |cx| {
            cx.module("predictions", |cx| {
                let bias = cx.param("bias", [vocab]).tensor();
                let x = cx.module("transform", |cx| {
                    let x = cx
                        .linear("dense", sequence, hidden, true)
                        .pipe(Tensor::silu);
                    cx.layer_norm("layer_norm", &x)
                });
                drop(cx.weight_until_tied([vocab, hidden]));
                x.linear(&weight, Some(&bias))
            })
        })
    }
}
