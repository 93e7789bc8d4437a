//! RegNet (transformers/models/regnet/modeling_regnet.py).

use super::conv_layer::{conv_layer, linear};
use super::layers::index_name;
use super::transformers::{Stages, stages};
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Copy)]
struct RegNet {
    stages: Stages,
    /// `embedding_size`.
    stem: u64,
    /// `groups_width`.
    group: u64,
    /// Layers of kind "y" weigh their channels.
    squeezes: bool,
    /// `downsample_in_first_stage`.
    first_halves: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let model = RegNet {
        stages: stages(sizes)?,
        stem: sizes.or("stem", 32),
        group: sizes.or("group", 64).max(1),
        squeezes: sizes.or("squeezes", 1) != 0,
        first_halves: sizes.or("first_halves", 1) != 0,
    };
    Ok(classifier(sizes, model))
}

impl ImageModel for RegNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let pooled = cx.module("regnet", |cx| {
            let mut x = cx.module("embedder", |cx| {
                cx.module("embedder", |cx| {
                    let conv = Conv::stride(2).padded(1);
                    conv_layer(cx, image, self.stem, 3, conv, Tensor::relu)
                })
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

impl RegNet {
    /// `RegNetXLayer.forward`, `RegNetYLayer.forward`; the constructor makes the shortcut first.
    fn layer(self, cx: &Cx, input: &Tensor, out: u64, stride: u64) -> Tensor {
        let groups = (out / self.group).max(1);
        let start = cx.tape.construction_point();
        let hidden = cx.module("layer", |cx| {
            let part = |i: usize, x: &Tensor, kernel, conv, activation| {
                let name = index_name(i);
                cx.module(name, |cx| conv_layer(cx, x, out, kernel, conv, activation))
            };
            let one = Conv::stride(1);
            let mut x = part(0, input, 1, one, Tensor::relu);
            let conv = Conv::stride(stride).padded(1).grouped(groups);
            x = part(1, &x, 3, conv, Tensor::relu);
            if self.squeezes {
                // `int(round(in_channels / 4))`.
                let reduced = (input.size(1) + 2) / 4;
                x = cx.module("2", |cx| squeezed(cx, &x, reduced));
                return part(3, &x, 1, one, linear);
            }
            part(2, &x, 1, one, linear)
        });
        let made = cx.tape.construction_point();
        let residual = if input.size(1) != out || stride != 1 {
            cx.module("shortcut", |cx| {
                conv_layer(cx, input, out, 1, Conv::stride(stride), linear)
            })
        } else {
            input.clone()
        };
        cx.tape.construct_here(start, made);
        let sum = hidden.add_(&residual);
        drop(residual);
        sum.relu()
    }
}

/// `RegNetSELayer.forward`.
fn squeezed(cx: &Cx, x: &Tensor, reduced: u64) -> Tensor {
    let pooled = x.adaptive_avg_pool2d(1);
    let weights = cx.module("attention", |cx| {
        let one = Conv::stride(1);
        let mut y = cx.conv2d("0", &pooled, reduced, 1, one, true);
        y = y.relu();
        y = cx.conv2d("2", &y, x.size(1), 1, one, true);
        y.sigmoid()
    });
    x.mul(&weights)
}
