//! ResNeSt (mmseg/models/backbones/resnest.py): ResNet-D whose convolutions of three by three are two, weighed by channel.

use crate::nets::vision::resnet::deep_stem;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Copy, Debug)]
pub(super) struct ResNest {
    depths: [u64; 4],
    /// By what the last stage divides the picture's side.
    stride: u64,
}

const LAYERS: [&str; 4] = ["layer1", "layer2", "layer3", "layer4"];
/// `radix`.
const SPLITS: u64 = 2;

impl ResNest {
    pub(super) fn of(sizes: &Sizes) -> Result<Self, ModelError> {
        let [a, b, c, d] = sizes.list("depths")? else {
            return Err(ModelError::MismatchedLists {
                names: "`depths`",
                expected: "one for each of four stages",
            });
        };
        Ok(Self {
            depths: [*a, *b, *c, *d],
            stride: sizes.or("stride", 8).max(1),
        })
    }

    pub(super) fn maps(self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut x = cx.module("stem", |cx| deep_stem(cx, image, 128));
        x = x.max_pool2d(3, Conv::stride(2).padded(1));
        let stages = LAYERS.into_iter().zip(self.depths).enumerate();
        stages
            .map(|(stage, (name, blocks))| {
                let dilation = ((4 << stage) / self.stride).max(1);
                let planes = 64 << stage;
                x = cx.module(name, |cx| {
                    cx.blocks(blocks as usize, &x, move |cx, x, i| {
                        let first = i == 0 && stage > 0;
                        let stride = if first && dilation == 1 { 2 } else { 1 };
                        let dilation = if i == 0 {
                            dilation.div_ceil(2)
                        } else {
                            dilation
                        };
                        bottleneck(cx, x, planes, stride, dilation)
                    })
                });
                x.clone()
            })
            .collect()
    }
}

fn bottleneck(cx: &Cx, input: &Tensor, planes: u64, stride: u64, dilation: u64) -> Tensor {
    let out = 4 * planes;
    let one = |cx: &Cx, conv, norm, x: &Tensor, out| {
        let x = cx.conv2d(conv, x, out, 1, Conv::default(), false);
        cx.batch_norm(norm, &x)
    };
    let mut x = one(cx, "conv1", "bn1", input, planes).relu_();
    x = cx.module("conv2", |cx| split(cx, &x, planes, dilation));
    if stride > 1 {
        x = x.avg_pool2d(3, Conv::stride(stride).padded(1));
    }
    x = one(cx, "conv3", "bn3", &x, out);
    let shortcut = if stride == 1 && input.size(1) == out {
        input.clone()
    } else {
        cx.module("downsample", |cx| {
            // A window of one where nothing is halved.
            let pooled = input.avg_pool2d(stride, Conv::stride(stride));
            one(cx, "1", "2", &pooled, out)
        })
    };
    x.add_(&shortcut).pipe(Tensor::relu_)
}

/// `SplitAttentionConv2d.forward`.
fn split(cx: &Cx, input: &Tensor, channels: u64, dilation: u64) -> Tensor {
    let form = Conv {
        dilation,
        ..Conv::stride(1).padded(dilation).grouped(SPLITS)
    };
    let wide = channels * SPLITS;
    let mut x = cx.conv2d("conv", input, wide, 3, form, false);
    x = cx.batch_norm("bn0", &x).pipe(Tensor::relu_);
    let (n, height, width) = (x.size(0), x.size(2), x.size(3));
    let splits = x.view(&[n, SPLITS, channels, height, width]);
    let mut gap = {
        let sum = splits.sum(&[1]).view(&[n, channels, height, width]);
        sum.adaptive_avg_pool2d(1)
    };
    let inner = (input.size(1) * SPLITS / 4).max(32);
    gap = cx.conv2d("fc1", &gap, inner, 1, Conv::default(), true);
    gap = cx.batch_norm("bn1", &gap).pipe(Tensor::relu_);
    let weights = cx.conv2d("fc2", &gap, wide, 1, Conv::default(), true);
    let weights = weights
        .view(&[n, 1, SPLITS, channels])
        .transpose(1, 2)
        .softmax(None)
        .reshape(&[n, SPLITS, channels, 1, 1]);
    let weighed = weights.mul(&splits);
    weighed.sum(&[1]).view(&[n, channels, height, width])
}
