//! ResNet-vd: three small convolutions in front, and shortcuts that average before they project
//! (transformers/models/rt_detr/modeling_rt_detr_resnet.py).

use super::Features;
use crate::nets::detection::backbone::frozen_norm;
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Region, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Copy, Debug)]
pub(super) struct Backbone {
    depths: [u64; 4],
    widths: [u64; 4],
    stem: u64,
    bottleneck: bool,
    /// `freeze_backbone_batch_norms`.
    frozen: bool,
}

impl Features for Backbone {
    fn features(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        self.maps(cx, image)
    }
}

impl Backbone {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let four = |name: &str| -> Result<[u64; 4], ModelError> {
            let all = sizes.list(name)?;
            <[u64; 4]>::try_from(all).map_err(|_| ModelError::MismatchedLists {
                names: "`depths` and `dims`",
                expected: "one for each of four stages",
            })
        };
        Ok(Self {
            depths: four("depths")?,
            widths: four("dims")?,
            stem: sizes.or("embedding", 64),
            bottleneck: sizes.or("bottleneck", 1) != 0,
            frozen: sizes.or("frozen_norms", 1) != 0,
        })
    }

    /// The maps of the last three stages.
    fn maps(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut x = cx.module("embedder", |cx| {
            cx.module("embedder", |cx| {
                let half = self.stem / 2;
                let layers = [(half, 2), (half, 1), (self.stem, 1)];
                let layers = layers.into_iter().enumerate();
                layers.fold(image.clone(), |x, (i, (width, stride))| {
                    cx.module(index_name(i), |cx| {
                        self.conv_layer(cx, &x, width, 3, stride).pipe(Tensor::relu)
                    })
                })
            })
        });
        x = x.max_pool2d(3, Conv::stride(2).padded(1));
        let stages = self.depths.into_iter().zip(self.widths);
        let mut all = vec![x.clone()];
        cx.module("encoder", |cx| {
            for (stage, (depth, width)) in stages.enumerate() {
                x = cx.module("stages", |cx| {
                    cx.module(index_name(stage), |cx| {
                        self.stage(cx, &x, depth, width, stage > 0)
                    })
                });
                all.push(x.clone());
            }
        });
        all.split_off(2)
    }

    fn stage(&self, cx: &Cx, x: &Tensor, depth: u64, width: u64, halves: bool) -> Tensor {
        let this = *self;
        cx.module("layers", |cx| {
            (0..depth as usize).fold(x.clone(), |x, i| {
                let stride = if i == 0 && halves { 2 } else { 1 };
                cx.module(index_name(i), |cx| {
                    cx.unary_block(Region::Convolutions, &x, move |cx, x| {
                        this.block(cx, x, width, stride, i == 0)
                    })
                })
            })
        })
    }

    /// A convolution without bias and its norm.
    fn conv_layer(&self, cx: &Cx, x: &Tensor, out: u64, kernel: u64, stride: u64) -> Tensor {
        let form = Conv::stride(stride).padded(kernel / 2);
        let x = cx.conv2d("convolution", x, out, kernel, form, false);
        if self.frozen {
            frozen_norm(cx, "normalization", &x)
        } else {
            cx.batch_norm("normalization", &x)
        }
    }

    /// `RTDetrResNetBottleNeckLayer.forward`, `RTDetrResNetBasicLayer.forward`.
    fn block(&self, cx: &Cx, input: &Tensor, width: u64, stride: u64, leads: bool) -> Tensor {
        let narrow = width / 4;
        let layers: &[(u64, u64, u64)] = if self.bottleneck {
            &[(narrow, 1, 1), (narrow, 3, stride), (width, 1, 1)]
        } else {
            &[(width, 3, stride), (width, 3, 1)]
        };
        let out = cx.module("layer", |cx| {
            let layers_run = layers.iter().enumerate();
            layers_run.fold(input.clone(), |x, (i, &(width, kernel, stride))| {
                cx.module(index_name(i), |cx| {
                    let y = self.conv_layer(cx, &x, width, kernel, stride);
                    if i + 1 < layers.len() { y.relu() } else { y }
                })
            })
        });
        let shortcut = self.shortcut(cx, input, width, stride, leads);
        out.add_(&shortcut).pipe(Tensor::relu)
    }

    fn shortcut(&self, cx: &Cx, input: &Tensor, width: u64, stride: u64, leads: bool) -> Tensor {
        let widens = input.size(1) != width;
        let averages = if self.bottleneck { stride == 2 } else { widens };
        let projects = if self.bottleneck {
            widens || stride != 1
        } else {
            leads
        };
        if !projects {
            return input.clone();
        }
        cx.module("shortcut", |cx| {
            if averages {
                // A stage that widens without halving averages all the same.
                let pooled = input.avg_pool2d(2, Conv::stride(2));
                cx.module("1", |cx| self.conv_layer(cx, &pooled, width, 1, 1))
            } else {
                self.conv_layer(cx, input, width, 1, stride)
            }
        })
    }
}
