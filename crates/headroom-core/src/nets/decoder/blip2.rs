//! BLIP-2: a ViT, queries that read it through a small BERT (`Blip2QFormerModel`), and an OPT
//! (transformers/models/blip_2/modeling_blip_2.py).

use super::super::attention::{Eager, attend, heads};
use super::super::blip::Tower;
use super::super::encoder::add_and_norm;
use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::family::Family;
use super::{Decoder, cache};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct Blip2 {
    tower: Tower,
    queries: QFormer,
    text: Decoder,
}

#[derive(Clone, Copy, Debug)]
struct QFormer {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    /// `cross_attention_frequency`: every n-th layer reads the picture.
    every: u64,
    /// `num_query_tokens`.
    count: u64,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("q_hidden")?;
    Ok(Box::new(Blip2 {
        tower: Tower::second(sizes)?,
        queries: QFormer {
            layers: sizes.need("q_layers")?,
            hidden,
            heads: sizes.need("q_heads")?.max(1),
            ffn: sizes.or("q_ffn", 4 * hidden),
            every: sizes.or("q_every", 2).max(1),
            count: sizes.or("queries", 32),
        },
        text: Decoder::new(sizes, family)?,
    }))
}

impl Net for Blip2 {
    /// One picture for each sample, whose tokens are part of the sequence.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = inputs::token_ids_and_labels(cx, data);
        all.insert(2, self.tower.pixels(cx, data.micro_batch));
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = cache(cx);
        let see = |cx: &Cx| {
            let [seen, pooled] = cx.module("vision_model", |cx| self.tower.forward(cx, pixels));
            let mask = seen.constant("ones", &[seen.size(0), seen.size(1)], DType::I64);
            let read = self.queries.forward(cx, &seen);
            let name = "language_projection";
            let features = cx.linear(name, &read, self.text.hidden, true);
            (vec![seen, pooled, mask, read], features)
        };
        let see = Some(&see as &dyn Fn(&Cx) -> (Vec<Tensor>, Tensor));
        let (hidden, features) = self.text.with_features(cx, ids, batch.get(3), &cache, see);
        self.text.output_with(cx, &hidden, labels, cache, features)
    }
}

impl QFormer {
    fn forward(self, cx: &Cx, seen: &Tensor) -> Tensor {
        let tokens = cx.param("query_tokens", [1, self.count, self.hidden]);
        let tokens = tokens
            .tensor()
            .expand(&[seen.size(0), self.count, self.hidden]);
        cx.module("qformer", |cx| {
            let first = cx.layer_norm("layernorm", &tokens);
            let first = cx.dropout(&first, 0.1);
            let seen = seen.clone();
            cx.module("encoder", |cx| {
                cx.stack("layer", self.layers, first, move |cx, x, i| {
                    self.layer(cx, x, (i as u64).is_multiple_of(self.every), &seen)
                })
            })
        })
    }

    /// `Blip2QFormerLayer.forward` of queries alone.
    fn layer(self, cx: &Cx, input: &Tensor, reads: bool, seen: &Tensor) -> Tensor {
        let attended = |cx: &Cx, name, x: &Tensor, read: &Tensor| {
            cx.module(name, |cx| {
                let (out, weights) = cx.module("attention", |cx| self.attention(cx, x, read));
                let normed = cx.module("output", |cx| add_and_norm(cx, &out, x));
                drop(weights);
                normed
            })
        };
        let own = attended(cx, "attention", input, input);
        let x = if reads {
            attended(cx, "crossattention", &own, seen)
        } else {
            own.clone()
        };
        let inner = cx.module("intermediate_query", |cx| {
            cx.linear("dense", &x, self.ffn, true).pipe(Tensor::gelu)
        });
        cx.module("output_query", |cx| add_and_norm(cx, &inner, &x))
    }

    fn attention(self, cx: &Cx, x: &Tensor, read: &Tensor) -> (Tensor, Option<Tensor>) {
        let project = |name, x: &Tensor| heads(&cx.linear(name, x, self.hidden, true), self.heads);
        let (q, k, v) = (
            project("query", x),
            project("key", read),
            project("value", read),
        );
        let none = AttentionMask::None;
        let (out, weights) = attend(cx, [&q, &k, &v], &none, 0.1, Eager::default());
        (out.reshape(x.shape()), weights)
    }
}
