//! MobileNet v2 (transformers/models/mobilenet_v2/modeling_mobilenet_v2.py), padded as TensorFlow pads.

use super::conv_layer::{conv_layer, divisible_by_eight, linear};
use super::{ImageModel, classifier};
use crate::nets::{Cx, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// What each block returns before the multiplier, the stem first, and by what it divides the picture's side.
const BLOCKS: [(u64, u64); 17] = [
    (16, 1),
    (24, 2),
    (24, 1),
    (32, 2),
    (32, 1),
    (32, 1),
    (64, 2),
    (64, 1),
    (64, 1),
    (64, 1),
    (96, 1),
    (96, 1),
    (96, 1),
    (160, 2),
    (160, 1),
    (160, 1),
    (320, 1),
];

#[derive(Clone, Copy)]
struct MobileNet {
    /// `depth_multiplier` in percent.
    width: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Box<dyn Net> {
    let model = MobileNet {
        width: sizes.or("width_percent", 100).min(100_000),
    };
    classifier(sizes, model)
}

impl ImageModel for MobileNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let this = *self;
        let pooled = cx.module("mobilenet_v2", |cx| {
            let mut x = cx.module("conv_stem", |cx| {
                let wide = this.channels(32);
                let first = padded_layer(cx, "first_conv", image, (wide, 3, 2, 1), relu6);
                let x = padded_layer(cx, "conv_3x3", &first, (wide, 3, 1, wide), relu6);
                padded_layer(cx, "reduce_1x1", &x, (this.channels(16), 1, 1, 1), linear)
            });
            let [_, blocks @ ..] = &BLOCKS;
            x = cx.module("layer", |cx| {
                cx.blocks(blocks.len(), &x, move |cx, x, i| {
                    let (channels, stride) = blocks.get(i).copied().unwrap_or((16, 1));
                    inverted_residual(cx, x, this.channels(channels), stride)
                })
            });
            // `finegrained_output`.
            let last = if this.width < 100 {
                1280
            } else {
                this.channels(1280)
            };
            padded_layer(cx, "conv_1x1", &x, (last, 1, 1, 1), relu6).adaptive_avg_pool2d(1)
        });
        let rows = pooled.flattened_from_one();
        drop(pooled);
        let dropped = rows.dropout_(cx.rate(0.8));
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl MobileNet {
    /// `apply_depth_multiplier`.
    fn channels(self, of: u64) -> u64 {
        divisible_by_eight((of * self.width + 50) / 100)
    }
}

/// `MobileNetV2InvertedResidual.forward`.
fn inverted_residual(cx: &Cx, input: &Tensor, out: u64, stride: u64) -> Tensor {
    let wide = divisible_by_eight(6 * input.size(1));
    let mut x = padded_layer(cx, "expand_1x1", input, (wide, 1, 1, 1), relu6);
    x = padded_layer(cx, "conv_3x3", &x, (wide, 3, stride, wide), relu6);
    x = padded_layer(cx, "reduce_1x1", &x, (out, 1, 1, 1), linear);
    if stride == 1 && input.size(1) == out {
        input.add(&x)
    } else {
        x
    }
}

/// `MobileNetV2ConvLayer.forward` with `apply_tf_padding`, which copies even where it adds nothing.
fn padded_layer(
    cx: &Cx,
    name: &'static str,
    x: &Tensor,
    (out, kernel, stride, groups): (u64, u64, u64, u64),
    activation: fn(&Tensor) -> Tensor,
) -> Tensor {
    let side = |n: u64| {
        let rest = n % stride;
        let before = if rest == 0 { stride } else { rest };
        n.saturating_add(kernel.saturating_sub(before))
    };
    let shape = [x.size(0), x.size(1), side(x.size(2)), side(x.size(3))];
    let padded = x.pad_to(&shape);
    cx.module(name, |cx| {
        let conv = Conv::stride(stride).grouped(groups);
        conv_layer(cx, &padded, out, kernel, conv, activation)
    })
}

fn relu6(x: &Tensor) -> Tensor {
    x.relu6()
}
