//! `EMAHead`: the map as a mixture of a few bases, which are found without gradients.

use super::super::layers::{flat, joined, point, three};
use crate::nets::Cx;
use crate::tape::Tensor;

/// `ema_channels`, `num_bases` and `num_stages`.
const WIDE: u64 = 512;
const BASES: u64 = 64;
const STAGES: u64 = 3;

pub(super) fn features(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    let feature = cx.conv_module("ema_in_conv", x, three(WIDE));
    let mid = cx.module("ema_mid_conv", |cx| {
        cx.module("conv", |cx| {
            let frozen = |name, shape: &[u64]| {
                let param = cx.param_as(name, shape, cx.env.weights, |_| false);
                param.tensor()
            };
            let (weight, bias) = (
                frozen("weight", &[WIDE, WIDE, 1, 1]),
                frozen("bias", &[WIDE]),
            );
            feature.convolution(&weight, Some(&bias), crate::tape::ops::Conv::default())
        })
    });
    let found = cx.module("ema_module", |cx| mixture(cx, &mid));
    drop(mid);
    let found = found.pipe(Tensor::relu_);
    let found = found.pipe(|found| cx.conv_and_norm("ema_out_conv", found, point(WIDE)));
    let sum = feature.add(&found);
    drop((feature, found));
    let y = sum.relu_();
    drop(sum);
    let y = cx.conv_module("bottleneck", &y, three(channels));
    let both = joined(x, &[y]);
    cx.conv_module("conv_cat", &both, three(channels))
}

/// `EMAModule.forward`.
fn mixture(cx: &Cx, x: &Tensor) -> Tensor {
    let n = x.size(0);
    let rows = flat(x);
    let kept = cx.buffer("bases", [1, x.size(1), BASES], cx.env.weights);
    let mut bases = kept.repeated(&[n, x.size(1), BASES]);
    let attention = cx.tape.no_grad(|| {
        let mut attention = None;
        for _ in 0..STAGES {
            let scores = rows.einsum("bcn", &bases, "bck", "bnk").softmax(None);
            let norm = scores.div(&scores.vector_length_over(&[1]));
            bases = rows.einsum("bcn", &norm, "bnk", "bck");
            bases = bases.div(&bases.vector_length_over(&[1]));
            attention = Some(scores);
        }
        attention
    });
    match attention {
        Some(attention) => bases
            .einsum("bck", &attention, "bnk", "bcn")
            .reshape(x.shape()),
        None => x.clone(),
    }
}
