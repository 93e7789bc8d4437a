//! XLNet, fine-tuned: one stream, in which each token attends to all by content and by distance
//! (transformers/models/xlnet/modeling_xlnet.py). Hidden states are `[S, B, H]`.

use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct XlNet {
    config: Config,
    head_dim: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Box::new(XlNet {
        head_dim: sizes.or("head_dim", config.hidden / config.heads),
        config,
    }))
}

impl Net for XlNet {
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
        let Config { hidden, vocab, .. } = self.config;
        let sequence = self.encode(cx, ids, batch.get(2));
        let path = ["transformer", "word_embedding"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        let logits = cx.module("lm_loss", |cx| {
            drop(cx.weight_until_tied([vocab, hidden]));
            let bias = cx.param("bias", [vocab]).tensor();
            sequence.linear(&weight, Some(&bias))
        });
        encoder::output(cx, logits, labels)
    }
}

impl TextEncoder for XlNet {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("transformer", |cx| self.model(cx, ids, padding))
    }

    /// Behind `XLNetSequenceSummary` of the last token.
    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let summary = cx.module("sequence_summary", |cx| {
            encoder::pooler(cx, "summary", hidden)
        });
        let dropped = cx.dropout(&summary, 0.1);
        cx.linear("logits_proj", &dropped, classes, true)
    }
}

impl XlNet {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config {
            layers,
            hidden,
            vocab,
            ..
        } = self.config;
        let (b, s) = (ids.size(0), ids.size(1));
        // Only pre-training reads it.
        cx.param("mask_emb", [1, 1, hidden]);
        let turned = ids.constant("contiguous", &[s, b], DType::I64);
        let mask = padding.map(|_| Self::mask(cx, &turned));
        let words = cx.input_embedding("word_embedding", &turned, vocab, hidden);
        let first = cx.dropout(&words, 0.1);
        let distances = self.distances(cx, &words);
        let this = *self;
        let last = cx.equal_stack("layer", layers, first.clone(), move |cx, x| {
            this.layer(cx, x, &distances, mask.as_ref())
        });
        let last = cx.dropout(&last, 0.1);
        let out = last.permute(&[1, 0, 2]).contiguous();
        drop((first, words, turned));
        out
    }

    /// `non_tgt_mask` of padded samples, `[S, S, B, 1]`.
    fn mask(cx: &Cx, ids: &Tensor) -> Tensor {
        let (s, b) = (ids.size(0), ids.size(1));
        let make = |op, shape: &[u64], dtype| ids.constant(op, shape, dtype);
        let given = make("to", &[1, s, b, 1], cx.env.weights);
        let sum = make("add", &[s, s, b, 1], cx.env.weights);
        let positive = make("gt", &[s, s, b, 1], DType::Bool);
        drop((given, sum));
        let mask = make("to", &[s, s, b, 1], cx.env.weights);
        drop(positive);
        mask
    }

    /// `relative_positional_encoding` `[2 S, B, H]`, dropped out.
    fn distances(&self, cx: &Cx, words: &Tensor) -> Tensor {
        let (s, b, hidden) = (words.size(0), words.size(1), self.config.hidden);
        cx.tape.no_grad(|| {
            let angles = words.constant("mul", &[2 * s, hidden / 2], DType::F32);
            let parts = [0; 2].map(|_| words.constant("sin", angles.shape(), DType::F32));
            let both = words.constant("cat", &[2 * s, 1, hidden], DType::F32);
            drop((angles, parts));
            cx.dropout(&both.expand(&[2 * s, b, hidden]), 0.1)
        })
    }

    /// `XLNetLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, distances: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let attended = cx.module("rel_attn", |cx| self.attention(cx, input, distances, mask));
        cx.module("ff", |cx| {
            let start = cx.tape.construction_point();
            let mut x = cx.linear("layer_1", &attended, self.config.ffn, true);
            x = x.gelu();
            x = cx.dropout(&x, 0.1);
            x = cx.linear("layer_2", &x, self.config.hidden, true);
            let made = cx.tape.construction_point();
            x = cx.dropout(&x, 0.1);
            let sum = x.add(&attended);
            let out = cx.layer_norm("layer_norm", &sum);
            // The constructor makes the norm first.
            cx.tape.construct_here(start, made);
            out
        })
    }

    /// `XLNetRelativeAttention.forward`.
    fn attention(&self, cx: &Cx, x: &Tensor, distances: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let Config { hidden, heads, .. } = self.config;
        let wide = [hidden, heads, self.head_dim];
        let [q, k, v, o, r] = ["q", "k", "v", "o", "r"].map(|name| cx.param(name, wide).tensor());
        let narrow = [heads, self.head_dim];
        let [by_place, _, by_content] =
            ["r_r_bias", "r_s_bias", "r_w_bias"].map(|name| cx.param(name, narrow).tensor());
        cx.param("seg_embed", [2, heads, self.head_dim]);
        let project = |x: &Tensor, weight: &Tensor| x.einsum("ibh", weight, "hnd", "ibnd");
        let (query, key, value) = (project(x, &q), project(x, &k), project(x, &v));
        let places = project(&distances.to(r.dtype()), &r);
        let mut out = self.read(
            [&query, &key, &value, &places],
            [&by_content, &by_place],
            mask,
            cx,
        );
        out = out.einsum("ibnd", &o, "hnd", "ibh");
        out = cx.dropout(&out, 0.1);
        out = out.add(x);
        let normed = cx.layer_norm("layer_norm", &out);
        drop((query, key, value, places));
        normed
    }

    /// `rel_attn_core`, whose names live to its end.
    fn read(
        &self,
        [query, key, value, places]: [&Tensor; 4],
        [by_content, by_place]: [&Tensor; 2],
        mask: Option<&Tensor>,
        cx: &Cx,
    ) -> Tensor {
        let (s, b, heads) = (query.size(0), query.size(1), self.config.heads);
        let content = query
            .add(by_content)
            .pipe(|query| query.einsum("ibnd", key, "jbnd", "bnij"));
        let mut place = query
            .add(by_place)
            .pipe(|query| query.einsum("ibnd", places, "jbnd", "bnij"));
        // `rel_shift_bnij`.
        place = place.reshape(&[b, heads, 2 * s, s]);
        place = place.narrow(2, (2 * s).saturating_sub(1)).reshape(&[
            b,
            heads,
            s,
            (2 * s).saturating_sub(1),
        ]);
        place = place.first_columns(s);
        let mut scores = content.add(&place);
        scores = scores.add_scalar();
        scores = scores.mul_scalar();
        if let Some(mask) = mask {
            let shape = [b, 1, s, s];
            let large = mask.constant("mul", &shape, mask.dtype());
            scores = scores.sub(&large);
        }
        let mut shares = scores.softmax(None);
        shares = cx.dropout(&shares, 0.1);
        let out = shares.einsum("bnij", value, "jbnd", "ibnd");
        drop((content, place, scores, shares));
        out
    }
}
