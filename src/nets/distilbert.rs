//! DistilBERT (transformers/models/distilbert/modeling_distilbert.py).

use super::attention::{Eager, attend, heads};
use super::bidirectional::bidirectional_mask;
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct DistilBert {
    headless: bool,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(DistilBert {
        headless: sizes.is_set("head=none"),
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        positions: sizes.or("ctx", 512),
    }))
}

impl Net for DistilBert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.within("distilbert", |cx| self.model(cx, ids, batch.get(2)));
        if self.headless {
            let loss = sequence.mean_all();
            return Output {
                loss,
                held: vec![sequence],
            };
        }
        let table = cx.within("distilbert", |cx| {
            cx.within("embeddings", |cx| {
                cx.within("word_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden])
                })
            })
        });
        let mut x = cx.linear("vocab_transform", &sequence, self.hidden, true);
        x = x.gelu();
        x = cx.layer_norm("vocab_layer_norm", &x);
        let logits = cx.within("vocab_projector", |cx| {
            let bias = cx.param("bias", [self.vocab]);
            x.linear(&table.tensor(), Some(&bias.tensor()))
        });
        let loss = cx.within("loss", |_| {
            let rows = labels.numel();
            logits
                .view(&[rows, self.vocab])
                .cross_entropy(&labels.view(&[rows]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl DistilBert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.within("embeddings", |cx| {
            let words = cx.input_embedding("word_embeddings", ids, self.vocab, self.hidden);
            let places = cx.buffer("position_ids", [1, self.positions], DType::I64);
            let places = places.narrow(1, ids.size(1));
            let places = cx.embedding("position_embeddings", &places, self.positions, self.hidden);
            let mut all = words.add(&places);
            all = cx.layer_norm("LayerNorm", &all);
            cx.dropout(&all, 0.1)
        });
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let this = *self;
        let last = cx.within("transformer", |cx| {
            let state = vec![embedded.clone()];
            cx.layers("layer", self.layers, state, move |cx, state, _| {
                state.iter().map(|x| this.layer(cx, x, &mask)).collect()
            })
        });
        last.into_iter().next().unwrap_or(embedded)
    }

    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let (mut attended, _weights) = cx.within("attention", |cx| self.attention(cx, input, mask));
        attended = {
            let sum = attended.add(input);
            cx.layer_norm("sa_layer_norm", &sum)
        };
        let fed = cx.within("ffn", |cx| {
            let mut x = cx.linear("lin1", &attended, self.ffn, true);
            x = x.gelu();
            x = cx.linear("lin2", &x, self.hidden, true);
            cx.dropout(&x, 0.1)
        });
        let sum = fed.add(&attended);
        cx.layer_norm("output_layer_norm", &sum)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = ["q_lin", "k_lin", "v_lin"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.1, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("out_lin", &out, self.hidden, true), weights)
    }
}
