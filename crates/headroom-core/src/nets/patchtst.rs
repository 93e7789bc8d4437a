//! `PatchTST`: an encoder over patches of each channel of a series (transformers/models/patchtst/modeling_patchtst.py), the
//! class for prediction.

use super::attention::{Eager, attend, heads};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct PatchTst {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    channels: u64,
    /// `context_length`.
    steps_in: u64,
    /// `prediction_length`.
    steps_out: u64,
    patch: u64,
    /// `patch_stride`.
    stride: u64,
    /// The head reads the mean over patches instead of all.
    pooled: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let patch = sizes.or("patch", 1).max(1);
    Ok(Box::new(PatchTst {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 512),
        channels: sizes.or("channels", 1),
        steps_in: sizes.or("steps_in", 32),
        steps_out: sizes.or("steps_out", 24),
        patch,
        stride: sizes.or("p_stride", patch).max(1),
        pooled: sizes.is_set("pooled"),
    }))
}

impl Net for PatchTst {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let series = |name, steps| {
            let shape = [data.micro_batch, steps, self.channels];
            cx.tape.empty(name, shape, cx.env.weights)
        };
        vec![
            series("past_values", self.steps_in),
            series("future_values", self.steps_out),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [past, future, ..] = batch else {
            return Output::empty(cx);
        };
        let (sequence, held) = cx.module("model", |cx| self.model(cx, past));
        let predicted = cx.module("head", |cx| {
            let (count, channels) = (sequence.size(0), sequence.size(1));
            let read = if self.pooled {
                sequence.mean(&[2]).squeeze(2)
            } else {
                sequence.reshape(&[count, channels, sequence.size(2) * self.hidden])
            };
            cx.linear("projection", &read, self.steps_out, true)
        });
        let [scale, loc, ..] = &held[..] else {
            return Output::empty(cx);
        };
        let scaled = predicted.transpose(2, 1).mul(scale);
        let predicted = scaled.add(loc);
        let loss = cx.module("loss", |_| predicted.mse_loss(future));
        Output {
            loss,
            held: [vec![predicted, sequence], held].concat(),
        }
    }
}

impl PatchTst {
    fn patches(&self) -> u64 {
        self.steps_in.saturating_sub(self.patch) / self.stride + 1
    }

    /// `PatchTSTModel.forward`: the last hidden states, and what its output holds else.
    fn model(&self, cx: &Cx, past: &Tensor) -> (Tensor, Vec<Tensor>) {
        let observed = past.constant("ones_like", past.shape(), past.dtype());
        let count = observed.sum(&[1]).pipe(Tensor::clamp);
        let mean = |x: &Tensor| x.sum(&[1]).pipe(|sum| sum.div(&count));
        let loc = past.mul(&observed).pipe(mean);
        let scale = past
            .sub(&loc)
            .pipe(|x| x.mul(&observed))
            .pipe(Tensor::pow)
            .pipe(mean)
            .pipe(Tensor::add_scalar)
            .pipe(Tensor::sqrt);
        let scaled = past.sub(&loc).pipe(|x| x.div(&scale));
        let (n, count) = (past.size(0), self.patches());
        let patched = scaled.overlapping(&[n, self.channels, count, self.patch]);
        let sequence = cx.module("encoder", |cx| self.encoder(cx, &patched));
        drop(observed);
        (sequence, vec![scale, loc, patched])
    }

    fn encoder(&self, cx: &Cx, patched: &Tensor) -> Tensor {
        let embedded = cx.module("embedder", |cx| {
            cx.linear("input_embedding", patched, self.hidden, true)
        });
        let hidden = cx.module("positional_encoder", |cx| {
            let places = cx
                .frozen()
                .param("position_enc", [self.patches(), self.hidden]);
            embedded.pipe(|embedded| embedded.add(&places.tensor()))
        });
        let this = *self;
        cx.equal_stack("layers", self.layers, hidden, move |cx, x| {
            this.layer(cx, x)
        })
    }

    /// `PatchTSTEncoderLayer.forward` with `pre_norm`.
    fn layer(self, cx: &Cx, input: &Tensor) -> Tensor {
        let width = self.hidden;
        let rows = [input.size(0) * input.size(1), input.size(2), width];
        let input_rows = input.reshape(&rows);
        let attended = norm(cx, "norm_sublayer1", &input_rows)
            .pipe(|normed| cx.module("self_attn", |cx| self.attention(cx, normed)));
        let hidden = input_rows.add(&attended);
        let fed = norm(cx, "norm_sublayer3", &hidden).pipe(|normed| {
            cx.module("ff", |cx| {
                let inner = cx.linear("0", normed, self.ffn, true).pipe(Tensor::gelu);
                cx.linear("3", &inner, width, true)
            })
        });
        hidden.add(&fed).reshape(input.shape())
    }

    fn attention(self, cx: &Cx, x: &Tensor) -> Tensor {
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let eager = Eager::default();
        let (mut out, weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
        out = out.reshape(x.shape());
        out = cx.linear("out_proj", &out, self.hidden, true);
        drop(weights);
        out
    }
}

/// `PatchTSTBatchNorm`.
fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        cx.batch_norm("batchnorm", &x.transpose(1, 2))
            .transpose(1, 2)
    })
}
