//! Layers of the encoder and the decoder.

use super::SpeechT5;
use crate::nets::Cx;
use crate::nets::kv_cache::{Cache, cached};
use crate::tape::Tensor;

impl SpeechT5 {
    pub(super) fn encoder_layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        mask: &Tensor,
        bias: &Tensor,
    ) -> Tensor {
        let (attended, weights) = cx.module("attention", |cx| {
            let q = self.query(cx, input, self.heads);
            let [k, v] = keys(cx, input, self.heads);
            self.attended(cx, [&q, &k, &v], mask, Some(bias))
        });
        drop(weights);
        let mut hidden = cx.dropout(&attended, 0.1);
        drop(attended);
        hidden = input.add(&hidden);
        hidden = cx.layer_norm("layer_norm", &hidden);
        self.fed(cx, &hidden, self.ffn)
    }

    /// The states, and the probabilities of letters.
    pub(super) fn decoder_layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        encoded: &Tensor,
        masks: &[Tensor; 2],
        kept: &Cache,
    ) -> [Tensor; 2] {
        let heads = self.decoder_heads;
        let mut hidden = input.clone();
        let mut seen = None;
        let sublayers = [
            ("self_attn", "self_attn_layer_norm", None),
            ("encoder_attn", "encoder_attn_layer_norm", Some(encoded)),
        ];
        for ((name, norm, read), mask) in sublayers.into_iter().zip(masks) {
            let (attended, weights) = cx.module(name, |cx| {
                let q = self.query(cx, &hidden, heads);
                let [k, v] = keys(cx, read.unwrap_or(&hidden), heads);
                let (k, v) = cached(kept, k, v);
                self.attended(cx, [&q, &k, &v], mask, None)
            });
            let dropped = cx.dropout(&attended, 0.1);
            drop(attended);
            hidden = hidden.add(&dropped);
            drop(dropped);
            hidden = cx.layer_norm(norm, &hidden);
            seen = Some(weights);
        }
        let out = self.fed(cx, &hidden, self.decoder_ffn);
        let seen = seen.unwrap_or_else(|| out.clone());
        [out, seen]
    }

    fn query(&self, cx: &Cx, x: &Tensor, heads: u64) -> Tensor {
        let scaled = cx.linear("q_proj", x, self.hidden, true).mul_scalar();
        let (b, s) = (x.size(0), x.size(1));
        let width = self.hidden / heads;
        scaled.view(&[b, s, heads, width]).transpose(1, 2)
    }

    /// `SpeechT5Attention.forward`, with `position_bias` where there is one: the result and the probabilities.
    fn attended(
        &self,
        cx: &Cx,
        [q, k, v]: [&Tensor; 3],
        mask: &Tensor,
        bias: Option<&Tensor>,
    ) -> (Tensor, Tensor) {
        let [b, heads, steps, width] = [q.size(0), q.size(1), q.size(2), q.size(3)];
        let rows = b.saturating_mul(heads);
        let flat = |x: &Tensor| x.reshape(&[rows, x.size(2), width]);
        let (q, k, v) = (flat(q), flat(k), flat(v));
        let keys = k.size(1);
        let mut scores = q.bmm(&k.transpose(1, 2));
        if let Some(bias) = bias {
            let by_distance = q.transpose(0, 1).matmul(&bias.transpose(-2, -1));
            scores = scores.add_(&by_distance.transpose(0, 1));
        }
        scores = scores
            .view(&[b, heads, steps, keys])
            .pipe(|scores| scores.add(mask))
            .view(&[rows, steps, keys]);
        let weights = scores.pipe(|scores| scores.softmax(None));
        let probabilities = cx.dropout(&weights, 0.1);
        let out = probabilities.bmm(&v);
        drop(probabilities);
        let out = out
            .view(&[b, heads, steps, width])
            .transpose(1, 2)
            .reshape(&[b, steps, self.hidden]);
        let out = cx.linear("out_proj", &out, self.hidden, true);
        (out, weights.view(&[b, heads, steps, keys]))
    }

    /// `SpeechT5FeedForward.forward`, its residual and the last norm.
    fn fed(&self, cx: &Cx, hidden: &Tensor, width: u64) -> Tensor {
        let more = cx.module("feed_forward", |cx| {
            let mut x = cx.linear("intermediate_dense", hidden, width, true);
            x = x.gelu();
            x = cx.dropout(&x, 0.1);
            x = cx.linear("output_dense", &x, self.hidden, true);
            cx.dropout(&x, 0.1)
        });
        let sum = hidden.add(&more);
        drop(more);
        cx.layer_norm("final_layer_norm", &sum)
    }
}

/// Keys and values of what is read, in heads.
fn keys(cx: &Cx, read: &Tensor, count: u64) -> [Tensor; 2] {
    ["k_proj", "v_proj"]
        .map(|name| cx.linear(name, read, count * (read.size(-1) / count), true))
        .map(|x| crate::nets::attention::heads(&x, count))
}
