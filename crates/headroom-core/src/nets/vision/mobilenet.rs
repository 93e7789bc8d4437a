//! MobileNetV3 (torchvision/models/mobilenetv3.py).

use super::layers::{Activation, index_name};
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// `InvertedResidual`.
#[derive(Clone, Copy, Debug)]
struct InvertedResidual {
    kernel: u64,
    expanded: u64,
    out: u64,
    squeeze: bool,
    activation: Activation,
    stride: u64,
}

const fn row(
    kernel: u64,
    expanded: u64,
    out: u64,
    squeeze: bool,
    activation: Activation,
    stride: u64,
) -> InvertedResidual {
    InvertedResidual {
        kernel,
        expanded,
        out,
        squeeze,
        activation,
        stride,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MobileNet {
    blocks: &'static [InvertedResidual],
    last: u64,
}

use Activation::{Hardswish as HS, Relu as RE};

pub(crate) const LARGE: MobileNet = MobileNet {
    blocks: &[
        row(3, 16, 16, false, RE, 1),
        row(3, 64, 24, false, RE, 2),
        row(3, 72, 24, false, RE, 1),
        row(5, 72, 40, true, RE, 2),
        row(5, 120, 40, true, RE, 1),
        row(5, 120, 40, true, RE, 1),
        row(3, 240, 80, false, HS, 2),
        row(3, 200, 80, false, HS, 1),
        row(3, 184, 80, false, HS, 1),
        row(3, 184, 80, false, HS, 1),
        row(3, 480, 112, true, HS, 1),
        row(3, 672, 112, true, HS, 1),
        row(5, 672, 160, true, HS, 2),
        row(5, 960, 160, true, HS, 1),
        row(5, 960, 160, true, HS, 1),
    ],
    last: 1280,
};

pub(crate) const SMALL: MobileNet = MobileNet {
    blocks: &[
        row(3, 16, 16, true, RE, 2),
        row(3, 72, 24, false, RE, 2),
        row(3, 88, 24, false, RE, 1),
        row(5, 96, 40, true, HS, 2),
        row(5, 240, 40, true, HS, 1),
        row(5, 240, 40, true, HS, 1),
        row(5, 120, 48, true, HS, 1),
        row(5, 144, 48, true, HS, 1),
        row(5, 288, 96, true, HS, 2),
        row(5, 576, 96, true, HS, 1),
        row(5, 576, 96, true, HS, 1),
    ],
    last: 1024,
};

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(sizes: &Sizes, body: MobileNet) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(sizes, body))
}

impl ImageModel for MobileNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let blocks = self.blocks;
        let mut x = cx.module("features", |cx| {
            let mut x = cx.conv_norm_activation("0", image, 16, 3, (2, 1), HS);
            for (i, block) in blocks.iter().copied().enumerate() {
                x = cx.module(index_name(i + 1), |cx| block.forward(cx, &x));
            }
            let out = 6 * x.size(1);
            cx.conv_norm_activation(index_name(blocks.len() + 1), &x, out, 1, (1, 1), HS)
        });
        x = x.adaptive_avg_pool2d(1);
        x = x.flattened_from_one();
        cx.module("classifier", |cx| {
            let mut x = cx.linear("0", &x, self.last, true);
            x = x.hardswish_();
            x = x.dropout_(0.2);
            cx.linear("3", &x, classes, true)
        })
    }
}

impl InvertedResidual {
    fn forward(self, cx: &Cx, input: &Tensor) -> Tensor {
        let Self {
            kernel,
            expanded,
            out,
            stride,
            ..
        } = self;
        let use_res_connect = stride == 1 && input.size(1) == out;
        let result = cx.module("block", |cx| {
            let mut next = 0..;
            let mut name = || index_name(next.next().unwrap_or(0));
            let mut x = input.clone();
            if expanded != x.size(1) {
                x = cx.conv_norm_activation(name(), &x, expanded, 1, (1, 1), self.activation);
            }
            let shape = (stride, expanded);
            x = cx.conv_norm_activation(name(), &x, expanded, kernel, shape, self.activation);
            if self.squeeze {
                let squeezed = divisible_by_eight(expanded / 4);
                x = cx.module(name(), |cx| squeeze_excitation(cx, &x, squeezed));
            }
            cx.conv_norm_activation(name(), &x, out, 1, (1, 1), Activation::None)
        });
        if use_res_connect {
            result.add_(input)
        } else {
            result
        }
    }
}

/// `SqueezeExcitation` with ReLU and a hard sigmoid.
fn squeeze_excitation(cx: &Cx, input: &Tensor, squeezed: u64) -> Tensor {
    let channels = input.size(1);
    let mut scale = input.adaptive_avg_pool2d(1);
    scale = cx.conv2d("fc1", &scale, squeezed, 1, Conv::default(), true);
    scale = scale.relu();
    scale = cx.conv2d("fc2", &scale, channels, 1, Conv::default(), true);
    scale = scale.hardsigmoid();
    scale.mul(input)
}

/// `_make_divisible(n, 8)`: the nearest multiple of eight that is not below nine tenths of `n`.
fn divisible_by_eight(n: u64) -> u64 {
    let near = ((n + 4) / 8 * 8).max(8);
    if 10 * near < 9 * n { near + 8 } else { near }
}
