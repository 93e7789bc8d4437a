//! ConvNeXt, ConvNeXt V2 and ResNet of transformers (transformers/models/{convnext,convnextv2,resnet}/modeling_*.py).

use super::conv_layer::{conv_layer as layer, linear};
use super::layers::index_name;
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Blocks and channels of each stage.
pub(super) type Stages = [(u64, u64); 4];

pub(super) fn stages(sizes: &Sizes) -> Result<Stages, ModelError> {
    let ([a, b, c, d], [e, f, g, h]) = (sizes.list("depths")?, sizes.list("dims")?) else {
        return Err(ModelError::MismatchedLists {
            names: "`depths` and `dims`",
            expected: "one of each for four stages",
        });
    };
    Ok([(*a, *e), (*b, *f), (*c, *g), (*d, *h)])
}

struct ConvNext {
    stages: Stages,
    patch: u64,
    /// The second generation normalizes over the picture in place of a learned scale.
    second: bool,
}

pub(crate) fn convnext(sizes: &Sizes, second: bool) -> Result<Box<dyn Net>, ModelError> {
    let model = ConvNext {
        stages: stages(sizes)?,
        patch: sizes.or("patch", 4).max(1),
        second,
    };
    Ok(classifier(sizes, model))
}

impl ImageModel for ConvNext {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let name = if self.second {
            "convnextv2"
        } else {
            "convnext"
        };
        let pooled = cx.module(name, |cx| {
            let [(_, stem), ..] = self.stages;
            let mut x = cx.module("embeddings", |cx| {
                let conv = Conv::stride(self.patch);
                let patches = cx.conv2d("patch_embeddings", image, stem, self.patch, conv, true);
                channels_first(cx, "layernorm", &patches)
            });
            x = cx.module("encoder", |cx| {
                let stage = |x: Tensor, i: usize, (blocks, channels): (u64, u64)| {
                    cx.list_item("stages", i, |cx| {
                        stage(cx, x, (i, blocks, channels), self.second)
                    })
                };
                let all = self.stages.into_iter().enumerate();
                all.fold(x.clone(), |x, (i, sizes)| stage(x, i, sizes))
            });
            let mean = x.mean(&[-2, -1]);
            let rows = mean.view(&[mean.size(0), mean.size(1)]);
            cx.layer_norm("layernorm", &rows)
        });
        cx.linear("classifier", &pooled, classes, true)
    }
}

/// `ConvNextStage.forward`.
fn stage(cx: &Cx, mut x: Tensor, (i, blocks, channels): (usize, u64, u64), second: bool) -> Tensor {
    if i > 0 {
        x = cx.module("downsampling_layer", |cx| {
            let normed = channels_first(cx, "0", &x);
            cx.conv2d("1", &normed, channels, 2, Conv::stride(2), true)
        });
    }
    cx.module("layers", |cx| {
        cx.blocks(blocks as usize, &x, move |cx, x, _| block(cx, x, second))
    })
}

/// `ConvNextLayer.forward`, `ConvNextV2Layer.forward`.
fn block(cx: &Cx, input: &Tensor, second: bool) -> Tensor {
    let channels = input.size(1);
    let scale = (!second).then(|| cx.param("layer_scale_parameter", [channels]).tensor());
    let conv = Conv::stride(1).padded(3).grouped(channels);
    let mut x = cx.conv2d("dwconv", input, channels, 7, conv, true);
    x = x.permute(&[0, 2, 3, 1]);
    x = cx.layer_norm("layernorm", &x);
    x = cx.linear("pwconv1", &x, 4 * channels, true);
    x = x.gelu();
    if second {
        x = cx.module("grn", |cx| response_norm(cx, x));
    }
    x = cx.linear("pwconv2", &x, channels, true);
    if let Some(scale) = scale {
        x = scale.mul(&x);
    }
    x = x.permute(&[0, 3, 1, 2]);
    input.add(&x)
}

/// `ConvNextV2GRN.forward` of `[B, H, W, C]`.
fn response_norm(cx: &Cx, x: Tensor) -> Tensor {
    let shape = [1, 1, 1, x.size(-1)];
    let [weight, bias] = ["weight", "bias"].map(|name| cx.param(name, shape).tensor());
    let global = x.vector_length_over(&[1, 2]);
    let mean = global.mean(&[-1]).pipe(Tensor::add_scalar);
    let norm = global.div(&mean);
    drop(mean);
    let scaled = x.mul(&norm).pipe(|product| weight.mul(product));
    let out = scaled
        .pipe(|scaled| scaled.add(&bias))
        .pipe(|sum| sum.add(&x));
    drop((global, norm));
    out
}

/// `ConvNextLayerNorm` of `channels_first`.
fn channels_first(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let mut x = x.permute(&[0, 2, 3, 1]);
    x = cx.layer_norm(name, &x);
    x.permute(&[0, 3, 1, 2])
}

#[derive(Clone, Copy)]
struct ResNet {
    stages: Stages,
    /// `embedding_size`.
    stem: u64,
    bottleneck: bool,
    /// `downsample_in_first_stage`.
    first_halves: bool,
    /// `downsample_in_bottleneck`.
    halves_early: bool,
}

pub(crate) fn resnet(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let model = ResNet {
        stages: stages(sizes)?,
        stem: sizes.or("stem", 64),
        bottleneck: sizes.or("bottleneck", 1) != 0,
        first_halves: sizes.is_set("first_halves"),
        halves_early: sizes.is_set("halves_early"),
    };
    Ok(classifier(sizes, model))
}

impl ImageModel for ResNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let pooled = cx.module("resnet", |cx| {
            let mut x = cx.module("embedder", |cx| {
                let embedded = cx.module("embedder", |cx| {
                    conv_layer(cx, image, self.stem, (7, 2), true)
                });
                embedded.max_pool2d(3, Conv::stride(2).padded(1))
            });
            x = cx.module("encoder", |cx| {
                let all = self.stages.into_iter().enumerate();
                all.fold(x.clone(), |x, (i, (blocks, channels))| {
                    cx.list_item("stages", i, |cx| {
                        let this = *self;
                        cx.module("layers", |cx| {
                            cx.blocks(blocks as usize, &x, move |cx, x, j| {
                                let halves = j == 0 && (i > 0 || this.first_halves);
                                this.layer(cx, x, channels, if halves { 2 } else { 1 })
                            })
                        })
                    })
                })
            });
            x.adaptive_avg_pool2d(1)
        });
        let rows = pooled.flattened_from_one();
        cx.module("classifier", |cx| cx.linear("1", &rows, classes, true))
    }
}

impl ResNet {
    /// `ResNetBasicLayer.forward`, `ResNetBottleNeckLayer.forward`.
    fn layer(self, cx: &Cx, input: &Tensor, out: u64, stride: u64) -> Tensor {
        let narrow = out / 4;
        let hidden = cx.module("layer", |cx| {
            let layer = |i: usize, x: &Tensor, out, size: (u64, u64), activated| {
                cx.module(index_name(i), |cx| conv_layer(cx, x, out, size, activated))
            };
            if !self.bottleneck {
                let x = layer(0, input, out, (3, stride), true);
                return layer(1, &x, out, (3, 1), false);
            }
            let (early, late) = if self.halves_early {
                (stride, 1)
            } else {
                (1, stride)
            };
            let mut x = layer(0, input, narrow, (1, early), true);
            x = layer(1, &x, narrow, (3, late), true);
            layer(2, &x, out, (1, 1), false)
        });
        let residual = if input.size(1) != out || stride != 1 {
            cx.module("shortcut", |cx| {
                conv_layer(cx, input, out, (1, stride), false)
            })
        } else {
            input.clone()
        };
        let sum = hidden.add_(&residual);
        drop(residual);
        sum.relu()
    }
}

/// `ResNetConvLayer.forward`, with its kernel and stride.
fn conv_layer(cx: &Cx, x: &Tensor, out: u64, (kernel, stride): (u64, u64), relu: bool) -> Tensor {
    let conv = Conv::stride(stride).padded(kernel / 2);
    let activation = if relu { Tensor::relu } else { linear };
    layer(cx, x, out, kernel, conv, activation)
}
