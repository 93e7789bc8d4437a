//! timm's ResNet-50 as detectors have it: features of four stages, batch norms that are frozen
//! (`DetrFrozenBatchNorm2d` in transformers/models/detr/modeling_detr.py).

use crate::nets::vision::index_name;
use crate::nets::{Cx, Region};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Blocks and width of each stage.
const STAGES: [(&str, usize, u64); 4] = [
    ("layer1", 3, 64),
    ("layer2", 4, 128),
    ("layer3", 6, 256),
    ("layer4", 3, 512),
];

/// The feature maps of all stages, the last one last.
pub(super) fn resnet_50(cx: &Cx, image: &Tensor) -> Vec<Tensor> {
    let mut x = cx.conv2d("conv1", image, 64, 7, Conv::stride(2).padded(3), false);
    x = frozen_norm(cx, "bn1", &x).pipe(Tensor::relu_);
    x = x.max_pool2d(3, Conv::stride(2).padded(1));
    let mut all = Vec::new();
    for (stage, (name, blocks, width)) in STAGES.into_iter().enumerate() {
        x = cx.module(name, |cx| {
            (0..blocks).fold(x.clone(), |x, i| {
                let stride = if i == 0 && stage > 0 { 2 } else { 1 };
                cx.module(index_name(i), |cx| {
                    cx.unary_block(Region::Convolutions, &x, move |cx, x| {
                        bottleneck(cx, x, width, stride)
                    })
                })
            })
        });
        all.push(x.clone());
    }
    all
}

fn bottleneck(cx: &Cx, input: &Tensor, width: u64, stride: u64) -> Tensor {
    let out = 4 * width;
    let layer = |conv, norm, x: &Tensor, out, kernel: u64, stride| {
        let form = Conv::stride(stride).padded(kernel / 2);
        let x = cx.conv2d(conv, x, out, kernel, form, false);
        frozen_norm(cx, norm, &x)
    };
    let mut x = layer("conv1", "bn1", input, width, 1, 1).pipe(Tensor::relu_);
    x = layer("conv2", "bn2", &x, width, 3, stride).pipe(Tensor::relu_);
    x = layer("conv3", "bn3", &x, out, 1, 1);
    let shortcut = if input.size(1) == out && stride == 1 {
        input.clone()
    } else {
        cx.module("downsample", |cx| {
            let x = cx.conv2d("0", input, out, 1, Conv::stride(stride), false);
            frozen_norm(cx, "1", &x)
        })
    };
    x.add_(&shortcut).pipe(Tensor::relu_)
}

/// `x * scale + bias` of buffers.
pub(super) fn frozen_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let channels = x.size(1);
        let parts = ["weight", "bias", "running_mean", "running_var"]
            .map(|name| cx.buffer(name, [channels], cx.env.weights));
        let [weight, ..] = &parts;
        let shape = [1, channels, 1, 1];
        let scale = weight.constant("mul", &shape, weight.dtype());
        let bias = weight.constant("sub", &shape, weight.dtype());
        x.mul(&scale).pipe(|scaled| scaled.add(&bias))
    })
}
