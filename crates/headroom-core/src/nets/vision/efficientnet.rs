//! EfficientNet B0 to B7 (torchvision/models/efficientnet.py).

use super::layers::{Activation, index_name};
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// A stage: expansion, kernel, stride, channels in and out, blocks.
type Stage = (u64, u64, u64, u64, u64, u64);

const STAGES: [Stage; 7] = [
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
];

/// The widths and depths are the first network's times tenths.
#[derive(Clone, Copy, Debug)]
struct EfficientNet {
    width: u64,
    depth: u64,
    dropout: f64,
}

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(
    sizes: &Sizes,
    width: u64,
    depth: u64,
    dropout: f64,
) -> Result<Box<dyn Net>, ModelError> {
    let body = EfficientNet {
        width,
        depth,
        dropout,
    };
    Ok(classifier(sizes, body))
}

/// `MBConv`.
#[derive(Clone, Copy, Debug)]
struct MbConv {
    expand: u64,
    kernel: u64,
    stride: u64,
    out: u64,
    stochastic_depth: f64,
}

impl ImageModel for EfficientNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        const SILU: Activation = Activation::Silu;
        let stages = STAGES.map(|stage| {
            let blocks = (stage.5 * self.depth).div_ceil(10);
            (stage, self.channels(stage.4), blocks)
        });
        let total: u64 = stages.iter().map(|(.., blocks)| blocks).sum();
        let mut x = cx.module("features", |cx| {
            let mut x = cx.conv_norm_activation("0", image, self.channels(32), 3, (2, 1), SILU);
            let mut before = 0;
            for (at, ((expand, kernel, stride, ..), out, blocks)) in stages.into_iter().enumerate()
            {
                x = cx.module(index_name(at + 1), |cx| {
                    cx.blocks(blocks as usize, &x, move |cx, x, i| {
                        let block = MbConv {
                            expand,
                            kernel,
                            stride: if i == 0 { stride } else { 1 },
                            out,
                            stochastic_depth: 0.2 * (before + i) as f64 / total.max(1) as f64,
                        };
                        block.forward(cx, x)
                    })
                });
                before += blocks as usize;
            }
            let out = 4 * x.size(1);
            cx.conv_norm_activation("8", &x, out, 1, (1, 1), SILU)
        });
        x = x.adaptive_avg_pool2d(1);
        x = x.flattened_from_one();
        cx.module("classifier", |cx| {
            let x = x.dropout_(self.dropout);
            cx.linear("1", &x, classes, true)
        })
    }
}

impl EfficientNet {
    /// `_make_divisible(channels * width, 8)`.
    fn channels(self, channels: u64) -> u64 {
        let tenths = channels * self.width;
        let near = ((tenths + 40) / 80 * 8).max(8);
        if 100 * near < 9 * tenths {
            near + 8
        } else {
            near
        }
    }
}

impl MbConv {
    fn forward(self, cx: &Cx, input: &Tensor) -> Tensor {
        const SILU: Activation = Activation::Silu;
        let channels = input.size(1);
        let expanded = channels * self.expand;
        let mut result = cx.module("block", |cx| {
            let mut next = 0..;
            let mut name = || index_name(next.next().unwrap_or(0));
            let mut x = input.clone();
            if self.expand != 1 {
                x = cx.conv_norm_activation(name(), &x, expanded, 1, (1, 1), SILU);
            }
            let shape = (self.stride, expanded);
            x = cx.conv_norm_activation(name(), &x, expanded, self.kernel, shape, SILU);
            let squeezed = (channels / 4).max(1);
            x = cx.module(name(), |cx| squeeze_excitation(cx, &x, squeezed));
            cx.conv_norm_activation(name(), &x, self.out, 1, (1, 1), Activation::None)
        });
        if self.stride == 1 && channels == self.out {
            result = result.drop_path(self.stochastic_depth);
            result = result.add_(input);
        }
        result
    }
}

/// `SqueezeExcitation` with SiLU and a sigmoid.
fn squeeze_excitation(cx: &Cx, input: &Tensor, squeezed: u64) -> Tensor {
    let channels = input.size(1);
    let mut scale = input.adaptive_avg_pool2d(1);
    scale = cx.conv2d("fc1", &scale, squeezed, 1, Conv::default(), true);
    scale = scale.silu_();
    scale = cx.conv2d("fc2", &scale, channels, 1, Conv::default(), true);
    scale = scale.sigmoid();
    scale.mul(input)
}
