//! DistilBERT (transformers/models/distilbert/modeling_distilbert.py).

use super::attention::{Eager, attend, heads};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct DistilBert {
    config: Config,
    headless: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(DistilBert {
        config: Config::new(sizes)?,
        headless: sizes.is_set("head=none"),
    }))
}

impl Net for DistilBert {
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
        let sequence = cx.module("distilbert", |cx| self.model(cx, ids, batch.get(2)));
        if self.headless {
            let loss = sequence.mean_all();
            return Output {
                loss,
                held: vec![sequence],
            };
        }
        let (logits, _transformed) = self.mlm_head(cx, &sequence);
        encoder::output(cx, logits, labels)
    }
}

impl TextEncoder for DistilBert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("distilbert", |cx| self.model(cx, ids, padding))
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let mut pooled = hidden.select(1);
        pooled = cx.linear("pre_classifier", &pooled, self.config.hidden, true);
        pooled = pooled.relu();
        pooled = cx.dropout(&pooled, 0.2);
        cx.linear("classifier", &pooled, classes, true)
    }
}

impl DistilBert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids));
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let this = *self;
        cx.module("transformer", |cx| {
            let layers = self.config.layers;
            cx.equal_stack("layer", layers, embedded.clone(), move |cx, hidden| {
                this.layer(cx, hidden, &mask)
            })
        })
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        let word_embeddings = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let position_ids = cx.buffer("position_ids", [1, positions], DType::I64);
        let position_ids = position_ids.narrow(1, ids.size(1));
        let position_embeddings =
            cx.embedding("position_embeddings", &position_ids, positions, hidden);
        let mut embeddings = word_embeddings.add(&position_embeddings);
        embeddings = cx.layer_norm("LayerNorm", &embeddings);
        cx.dropout(&embeddings, 0.1)
    }

    /// `TransformerBlock.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let (mut attended, _weights) = cx.module("attention", |cx| self.attention(cx, input, mask));
        attended = {
            let sum = attended.add(input);
            cx.layer_norm("sa_layer_norm", &sum)
        };
        let ffn_output = cx.module("ffn", |cx| {
            let mut x = cx.linear("lin1", &attended, self.config.ffn, true);
            x = x.gelu();
            x = cx.linear("lin2", &x, self.config.hidden, true);
            cx.dropout(&x, 0.1)
        });
        let sum = ffn_output.add(&attended);
        cx.layer_norm("output_layer_norm", &sum)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let hidden = self.config.hidden;
        let [q, k, v] = ["q_lin", "k_lin", "v_lin"]
            .map(|name| heads(&cx.linear(name, x, hidden, true), self.config.heads));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.1, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), hidden]);
        (cx.linear("out_lin", &out, hidden, true), weights)
    }

    /// The end of `DistilBertForMaskedLM.forward`: logits, and `prediction_logits` before the projector, a name of that
    /// function that lives through the loss.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> (Tensor, Tensor) {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["distilbert", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        let mut x = cx.linear("vocab_transform", sequence, hidden, true);
        x = x.gelu();
        x = cx.layer_norm("vocab_layer_norm", &x);
        let logits = cx.module("vocab_projector", |cx| {
            let bias = cx.param("bias", [vocab]);
            x.linear(&weight, Some(&bias.tensor()))
        });
        (logits, x)
    }
}
