//! Longformer: RoBERTa with attention within windows (transformers/models/longformer/modeling_longformer.py). Samples are padded to
//! whole windows; of classes of sequences the first token sees all.

use super::encoder::{self, Config, add_and_norm, feed_forward};
use super::inputs::token_ids_and_labels;
use super::sliding_chunks::{SlidingChunks, padded_length};
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Objective};

#[derive(Clone, Copy, Debug)]
struct Longformer {
    config: Config,
    types: u64,
    /// `attention_window`.
    window: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Longformer {
        config: Config::new(sizes)?,
        types: sizes.or("types", 2),
        window: sizes.or("window", 512).max(2),
    }))
}

impl Net for Longformer {
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

impl TextEncoder for Longformer {
    fn encode(&self, cx: &Cx, ids: &Tensor, _padding: Option<&Tensor>) -> Tensor {
        cx.module("longformer", |cx| self.model(cx, ids))
    }

    fn unread(&self, cx: &Cx) {
        cx.module("longformer", |cx| {
            cx.module("pooler", |cx| {
                encoder::unread_dense(cx, "dense", self.config.hidden);
            });
        });
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        encoder::classification_head(cx, hidden, classes)
    }
}

impl Longformer {
    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        let whole = padded_length(s, self.window);
        let ones = ids.constant("ones", &[b, s], DType::F32);
        let types = ids.constant("zeros", &[b, whole], DType::I64);
        let padded = (whole > s).then(|| ids.constant("pad", &[b, whole], DType::I64));
        let given = padded.as_ref().unwrap_or(ids);
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, given, &types));
        let mask = ids.constant("where", &[b, 1, whole, whole], embedded.dtype());
        let masked = ids.constant("lt", &[b, whole], DType::Bool);
        let classifies = matches!(
            cx.env.training.task.objective,
            Objective::Classification | Objective::Regression
        );
        let attention = SlidingChunks {
            hidden: self.config.hidden,
            heads: self.config.heads,
            reach: (self.window / 2).max(1),
            dropout: 0.1,
            global: classifies,
        };
        let ffn = self.config.ffn;
        let last = cx.module("encoder", |cx| {
            let first = embedded.clone();
            cx.equal_stack("layer", self.config.layers, first, move |cx, x| {
                let attended = cx.module("attention", |cx| {
                    let out = cx.module("self", |cx| attention.forward(cx, x));
                    cx.module("output", |cx| add_and_norm(cx, &out, x))
                });
                feed_forward(cx, &attended, ffn)
            })
        });
        drop((ones, types, mask, masked, embedded, padded));
        last.narrow(1, s)
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor, types: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        let places = ids.constant("add", ids.shape(), DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let by_order = cx.embedding("position_embeddings", &places, positions, hidden);
        let kinds = cx.embedding("token_type_embeddings", types, self.types, hidden);
        let mut sum = words.add(&by_order);
        sum = sum.add(&kinds);
        let normed = cx.layer_norm("LayerNorm", &sum);
        let out = cx.dropout(&normed, 0.1);
        drop((words, by_order, kinds));
        out
    }

    /// `LongformerLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["longformer", "embeddings", "word_embeddings"];
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
