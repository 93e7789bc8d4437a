//! ConvNeXt (torchvision/models/convnext.py, timm/models/convnext.py).

use super::layers::index_name;
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Blocks and channels of each stage.
pub(crate) type Stages = [(u64, u64); 4];

pub(crate) const TINY: Stages = [(3, 96), (3, 192), (9, 384), (3, 768)];
pub(crate) const SMALL: Stages = [(3, 96), (3, 192), (27, 384), (3, 768)];
pub(crate) const BASE: Stages = [(3, 128), (3, 256), (27, 512), (3, 1024)];
pub(crate) const LARGE: Stages = [(3, 192), (3, 384), (27, 768), (3, 1536)];
pub(crate) const XLARGE: Stages = [(3, 256), (3, 512), (27, 1024), (3, 2048)];

struct Torchvision {
    stages: Stages,
    /// The rate of the last block's stochastic depth (`stochastic_depth_prob`).
    depth: f64,
}

struct Timm {
    stages: Stages,
}

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn torchvision(
    sizes: &Sizes,
    stages: Stages,
    depth: f64,
) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(sizes, Torchvision { stages, depth }))
}

#[allow(clippy::unnecessary_wraps)]
pub(crate) fn timm(sizes: &Sizes, stages: Stages) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(sizes, Timm { stages }))
}

/// A network of the catalogue, as timm runs it: its stages are sizes.
pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let ([a, b, c, d], [e, f, g, h]) = (sizes.list("depths")?, sizes.list("dims")?) else {
        return Err(ModelError::MismatchedLists {
            names: "`depths` and `dims`",
            expected: "one of each for four stages",
        });
    };
    timm(sizes, [(*a, *e), (*b, *f), (*c, *g), (*d, *h)])
}

impl ImageModel for Torchvision {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let total: u64 = self.stages.iter().map(|(blocks, _)| blocks).sum();
        let depth = self.depth;
        let last = total.saturating_sub(1).max(1) as f64;
        let mut x = cx.module("features", |cx| {
            let [(_, stem), ..] = self.stages;
            let mut x = cx.module("0", |cx| {
                let mut x = cx.conv2d("0", image, stem, 4, Conv::stride(4), true);
                x = layer_norm_2d(cx, "1", &x);
                x
            });
            let mut before = 0;
            for (stage, (blocks, channels)) in self.stages.into_iter().enumerate() {
                if stage > 0 {
                    x = cx.module(index_name(2 * stage), |cx| {
                        let mut y = layer_norm_2d(cx, "0", &x);
                        y = cx.conv2d("1", &y, channels, 2, Conv::stride(2), true);
                        y
                    });
                }
                x = cx.module(index_name(2 * stage + 1), |cx| {
                    cx.blocks(blocks as usize, &x, move |cx, x, i| {
                        torchvision_block(cx, x, depth * (before + i) as f64 / last)
                    })
                });
                before += blocks as usize;
            }
            x
        });
        x = x.adaptive_avg_pool2d(1);
        cx.module("classifier", |cx| {
            let mut x = layer_norm_2d(cx, "0", &x);
            x = x.flattened_from_one();
            cx.linear("2", &x, classes, true)
        })
    }
}

/// `CNBlock`.
fn torchvision_block(cx: &Cx, input: &Tensor, skipped: f64) -> Tensor {
    let channels = input.size(1);
    let scale = cx.param("layer_scale", [channels, 1, 1]).tensor();
    let mut result = cx.module("block", |cx| {
        let conv = Conv::stride(1).padded(3).grouped(channels);
        let mut x = cx.conv2d("0", input, channels, 7, conv, true);
        x = x.permute(&[0, 2, 3, 1]);
        x = cx.layer_norm("2", &x);
        x = cx.linear("3", &x, 4 * channels, true);
        x = x.gelu();
        x = cx.linear("5", &x, channels, true);
        x.permute(&[0, 3, 1, 2])
    });
    result = scale.mul(&result);
    result = result.drop_path(skipped);
    result.add_(input)
}

impl ImageModel for Timm {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let [(_, stem), ..] = self.stages;
        let mut x = cx.module("stem", |cx| {
            let mut x = cx.conv2d("0", image, stem, 4, Conv::stride(4), true);
            x = layer_norm_2d(cx, "1", &x);
            x
        });
        x = cx.module("stages", |cx| {
            let mut x = x.clone();
            for (stage, (blocks, channels)) in self.stages.into_iter().enumerate() {
                x = cx.module(index_name(stage), |cx| {
                    let mut x = x.clone();
                    if stage > 0 {
                        x = cx.module("downsample", |cx| {
                            let mut y = layer_norm_2d(cx, "0", &x);
                            y = cx.conv2d("1", &y, channels, 2, Conv::stride(2), true);
                            y
                        });
                    }
                    cx.module("blocks", |cx| {
                        cx.blocks(blocks as usize, &x, |cx, x, _| timm_block(cx, x))
                    })
                });
            }
            x
        });
        cx.module("head", |cx| {
            let mut x = x.adaptive_avg_pool2d(1);
            x = layer_norm_2d(cx, "norm", &x);
            x = x.flattened_from_one();
            cx.linear("fc", &x, classes, true)
        })
    }
}

/// `ConvNeXtBlock`.
fn timm_block(cx: &Cx, input: &Tensor) -> Tensor {
    let channels = input.size(1);
    let gamma = cx.param("gamma", [channels]).tensor();
    let conv = Conv::stride(1).padded(3).grouped(channels);
    let mut x = cx.conv2d("conv_dw", input, channels, 7, conv, true);
    x = x.permute(&[0, 2, 3, 1]);
    x = cx.layer_norm("norm", &x);
    x = cx.module("mlp", |cx| {
        let mut x = cx.linear("fc1", &x, 4 * channels, true);
        x = x.gelu();
        cx.linear("fc2", &x, channels, true)
    });
    x = x.permute(&[0, 3, 1, 2]);
    x = gamma
        .reshape(&[1, channels, 1, 1])
        .pipe(|gamma| x.mul(gamma));
    x.add(input)
}

/// `LayerNorm2d`: a layer norm over the channels.
fn layer_norm_2d(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let mut x = x.permute(&[0, 2, 3, 1]);
    x = cx.layer_norm(name, &x);
    x.permute(&[0, 3, 1, 2])
}
