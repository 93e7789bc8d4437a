//! MobileViT (transformers/models/mobilevit/modeling_mobilevit.py).

use super::conv_layer::{conv_layer, divisible_by_eight, linear};
use super::{ImageModel, classifier};
use crate::nets::attention::heads;
use crate::nets::{Cx, ModelError, Net, Region, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Copy)]
struct MobileVit {
    /// `neck_hidden_sizes`.
    necks: [u64; 7],
    /// `hidden_sizes`.
    hidden: [u64; 3],
    heads: u64,
}

/// Transformer layers of the three stages that have them.
const DEPTHS: [u64; 3] = [2, 4, 3];

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (necks, hidden) = (sizes.list("necks")?, sizes.list("dims")?);
    let (Ok(necks), Ok(hidden)) = (necks.try_into(), hidden.try_into()) else {
        return Err(ModelError::MismatchedLists {
            names: "`necks` and `dims`",
            expected: "seven and three",
        });
    };
    let model = MobileVit {
        necks,
        hidden,
        heads: sizes.or("heads", 4).max(1),
    };
    Ok(classifier(sizes, model))
}

impl ImageModel for MobileVit {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let [first, second, third, .., last] = self.necks;
        let pooled = cx.module("mobilevit", |cx| {
            let mut x = cx.module("conv_stem", |cx| {
                conv_layer(cx, image, first, 3, Conv::stride(2).padded(1), Tensor::silu)
            });
            x = cx.module("encoder", |cx| {
                let mobile = |at, x: &Tensor, out, stride, count| {
                    cx.list_item("layer", at, |cx| {
                        (0..count).fold(x.clone(), |x, i| {
                            let stride = if i == 0 { stride } else { 1 };
                            cx.list_item("layer", i, |cx| inverted_residual(cx, &x, out, stride))
                        })
                    })
                };
                x = mobile(0, &x, second, 1, 1);
                x = mobile(1, &x, third, 2, 3);
                for (i, depth) in DEPTHS.into_iter().enumerate() {
                    let this = *self;
                    x = cx.list_item("layer", 2 + i, |cx| {
                        cx.unary_block(Region::Layer(i), &x, move |cx, x| {
                            this.layer(cx, x, i, depth)
                        })
                    });
                }
                x
            });
            x = cx.module("conv_1x1_exp", |cx| {
                conv_layer(cx, &x, last, 1, Conv::stride(1), Tensor::silu)
            });
            x.mean(&[-2, -1])
        });
        let rows = pooled.flattened_from_one();
        drop(pooled);
        let dropped = rows.dropout_(cx.rate(0.1));
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl MobileVit {
    /// `MobileViTLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, stage: usize, depth: u64) -> Tensor {
        let channels = self.necks.get(3 + stage).copied().unwrap_or(1);
        let hidden = self.hidden.get(stage).copied().unwrap_or(1);
        let residual = cx.module("downsampling_layer", |cx| {
            inverted_residual(cx, input, channels, 2)
        });
        let part = |name, x: &Tensor, out, kernel: u64| {
            let conv = Conv::stride(1).padded(kernel / 2);
            cx.module(name, |cx| {
                conv_layer(cx, x, out, kernel, conv, Tensor::silu)
            })
        };
        let mut x = part("conv_kxk", &residual, channels, 3);
        x = cx.module("conv_1x1", |cx| {
            cx.conv2d("convolution", &x, hidden, 1, Conv::stride(1), false)
        });
        let side = [x.size(2), x.size(3)];
        let mut patches = unfolded(&x);
        drop(x);
        patches = cx.module("transformer", |cx| {
            (0..depth as usize).fold(patches.clone(), |x, i| {
                cx.list_item("layer", i, |cx| self.transformer_layer(cx, &x))
            })
        });
        patches = cx.layer_norm("layernorm", &patches);
        let mut x = folded(&patches, side);
        drop(patches);
        x = part("conv_projection", &x, channels, 1);
        let both = Tensor::cat(&residual, &[&x], 1);
        drop(x);
        both.pipe(|both| part("fusion", both, channels, 3))
    }

    /// `MobileViTTransformerLayer.forward`; the constructor makes the norms last.
    fn transformer_layer(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let width = input.size(-1);
        let normed = cx.layer_norm("layernorm_before", input);
        let attended = cx.module("attention", |cx| {
            let out = cx.module("attention", |cx| self.attention(cx, &normed));
            drop(normed);
            cx.module("output", |cx| {
                let x = cx.linear("dense", &out, width, true);
                cx.dropout(&x, 0.1)
            })
        });
        let hidden = attended.add(input);
        drop(attended);
        let mut x = cx.layer_norm("layernorm_after", &hidden);
        x = cx.module("intermediate", |cx| {
            cx.linear("dense", &x, 2 * width, true).pipe(Tensor::silu)
        });
        cx.module("output", |cx| {
            x = cx.linear("dense", &x, width, true);
            x = cx.dropout(&x, 0.1);
            x.add(&hidden)
        })
    }

    /// `MobileViTSelfAttention.forward`, which is eager whatever the run requests.
    fn attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let [q, k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, x.size(-1), true), self.heads));
        let mut scores = q.matmul(&k.transpose(-1, -2));
        scores = scores.mul_scalar();
        let shares = scores.softmax(None);
        let mut context = shares.matmul(&v);
        context = context.permute(&[0, 2, 1, 3]).contiguous();
        let out = context.view(x.shape());
        drop((q, k, v, scores, shares));
        out
    }
}

/// `MobileViTInvertedResidual.forward`.
fn inverted_residual(cx: &Cx, input: &Tensor, out: u64, stride: u64) -> Tensor {
    let wide = divisible_by_eight(4 * input.size(1));
    let part = |name, x: &Tensor, out, kernel, conv, activation| {
        cx.module(name, |cx| conv_layer(cx, x, out, kernel, conv, activation))
    };
    let one = Conv::stride(1);
    let mut x = part(
        "expand_1x1",
        input,
        wide,
        1,
        one,
        Tensor::silu as fn(&Tensor) -> Tensor,
    );
    let conv = Conv::stride(stride).padded(1).grouped(wide);
    x = part("conv_3x3", &x, wide, 3, conv, Tensor::silu);
    x = part("reduce_1x1", &x, out, 1, one, linear);
    if stride == 1 && input.size(1) == out {
        input.add(&x)
    } else {
        x
    }
}

/// `unfolding` into patches of four pixels: rows of the pixels at one place of all patches.
fn unfolded(x: &Tensor) -> Tensor {
    let even = [x.size(2), x.size(3)].map(|n| n.div_ceil(2));
    let [down, across] = even;
    let (b, c) = (x.size(0), x.size(1));
    let whole = if x.size(2) % 2 == 1 || x.size(3) % 2 == 1 {
        x.interpolate(2 * down, 2 * across)
    } else {
        x.clone()
    };
    let mut patches = whole.reshape(&[b * c * down, 2, across, 2]).transpose(1, 2);
    patches = patches.reshape(&[b, c, down * across, 4]).transpose(1, 3);
    patches.reshape(&[b * 4, down * across, c])
}

/// `folding`, its reverse.
fn folded(patches: &Tensor, [height, width]: [u64; 2]) -> Tensor {
    let (down, across) = (height.div_ceil(2), width.div_ceil(2));
    let (b, c) = (patches.size(0) / 4, patches.size(2));
    let mut x = patches
        .contiguous()
        .view(&[b, 4, down * across, c])
        .transpose(1, 3);
    x = x.reshape(&[b * c * down, across, 2, 2]).transpose(1, 2);
    x = x.reshape(&[b, c, 2 * down, 2 * across]);
    if height % 2 == 1 || width % 2 == 1 {
        x.interpolate(height, width)
    } else {
        x
    }
}
