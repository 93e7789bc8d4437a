//! MobileNets whose later blocks are dilated (mmseg/models/backbones/mobilenet_v2.py and mobilenet_v3.py).

use super::layers::{Window, point, window};
use crate::nets::vision::index_name;
use crate::nets::{Cx, Region};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// A convolution's output, kernel, stride, dilation and groups.
#[derive(Clone, Copy, Debug)]
struct Shape {
    window: Window,
    stride: u64,
    groups: u64,
}

/// `Conv2dAdaptivePadding` of mmcv: zeros after the last places as TensorFlow adds them, in a copy, and a convolution without padding.
fn padded(cx: &Cx, name: &'static str, x: &Tensor, shape: Shape) -> Tensor {
    let Window {
        kernel, dilation, ..
    } = shape.window;
    let reach = dilation.saturating_mul(kernel.saturating_sub(1));
    let side = |n: u64| {
        let last = n.div_ceil(shape.stride).saturating_sub(1);
        n.max(last.saturating_mul(shape.stride).saturating_add(reach + 1))
    };
    let larger = x.pad_to(&[x.size(0), x.size(1), side(x.size(2)), side(x.size(3))]);
    let form = Conv {
        dilation,
        ..Conv::stride(shape.stride).grouped(shape.groups)
    };
    cx.formed_conv_and_norm(name, &larger, shape.window, form)
}

fn normed(cx: &Cx, name: &'static str, x: &Tensor, shape: Shape) -> Tensor {
    let form = Conv {
        stride: shape.stride,
        ..shape.window.form().grouped(shape.groups)
    };
    cx.formed_conv_and_norm(name, x, shape.window, form)
}

/// Each layer of v2: expansion, channels, blocks, stride, dilation of its first block.
const SECOND: [(u64, u64, usize, u64, u64); 7] = [
    (1, 16, 1, 1, 1),
    (6, 24, 2, 2, 1),
    (6, 32, 3, 2, 1),
    (6, 64, 4, 1, 2),
    (6, 96, 3, 1, 2),
    (6, 160, 3, 1, 4),
    (6, 320, 1, 1, 4),
];
const LAYERS: [&str; 7] = [
    "layer1", "layer2", "layer3", "layer4", "layer5", "layer6", "layer7",
];

/// `out_indices` of one, two, four and six.
pub(super) fn second(cx: &Cx, image: &Tensor) -> Vec<Tensor> {
    let stem = Shape {
        window: window(32, 3, 1),
        stride: 2,
        groups: 1,
    };
    let mut x = normed(cx, "conv1", image, stem).pipe(Tensor::relu6_);
    let mut maps = Vec::new();
    for (layer, (expansion, out, blocks, stride, dilation)) in SECOND.into_iter().enumerate() {
        let name = LAYERS.get(layer).copied().unwrap_or_default();
        x = cx.module(name, |cx| {
            cx.blocks(blocks, &x, move |cx, x, i| {
                let (stride, dilation) = if i == 0 { (stride, dilation) } else { (1, 1) };
                inverted(cx, x, [expansion, out], stride, dilation)
            })
        });
        if matches!(layer, 1 | 2 | 4 | 6) {
            maps.push(x.clone());
        }
    }
    maps
}

fn inverted(
    cx: &Cx,
    input: &Tensor,
    [expansion, out]: [u64; 2],
    stride: u64,
    dilation: u64,
) -> Tensor {
    let wide = input.size(1) * expansion;
    let y = cx.module("conv", |cx| {
        let mut next = 0..;
        let mut name = || index_name(next.next().unwrap_or(0));
        let mut y = input.clone();
        if expansion > 1 {
            y = cx
                .conv_and_norm(name(), &y, point(wide))
                .pipe(Tensor::relu6_);
        }
        let deep = Shape {
            window: window(wide, 3, dilation),
            stride,
            groups: wide,
        };
        y = normed(cx, name(), &y, deep).pipe(Tensor::relu6_);
        cx.conv_and_norm(name(), &y, point(out))
    });
    if stride == 1 && input.size(1) == out {
        input.add(&y)
    } else {
        y
    }
}

/// How a block of v3 steps over places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    One,
    Two,
    /// Two in the classifier, dilated here; still padded as if it were two.
    Dilated,
}

/// A block of v3: kernel, channels inside and after, whether channels are weighted, whether it is ReLU (else `HSwish`), its step.
type Third = (u64, u64, u64, bool, bool, Step);

use Step::{Dilated, One, Two};

const LARGE: [Third; 15] = [
    (3, 16, 16, false, true, One),
    (3, 64, 24, false, true, Two),
    (3, 72, 24, false, true, One),
    (5, 72, 40, true, true, Two),
    (5, 120, 40, true, true, One),
    (5, 120, 40, true, true, One),
    (3, 240, 80, false, false, Dilated),
    (3, 200, 80, false, false, One),
    (3, 184, 80, false, false, One),
    (3, 184, 80, false, false, One),
    (3, 480, 112, true, false, One),
    (3, 672, 112, true, false, One),
    (5, 672, 160, true, false, Dilated),
    (5, 960, 160, true, false, One),
    (5, 960, 160, true, false, One),
];
const SMALL: [Third; 11] = [
    (3, 16, 16, true, true, Two),
    (3, 72, 24, false, true, Two),
    (3, 88, 24, false, true, One),
    (5, 96, 40, true, false, Dilated),
    (5, 240, 40, true, false, One),
    (5, 240, 40, true, false, One),
    (5, 120, 48, true, false, One),
    (5, 144, 48, true, false, One),
    (5, 288, 96, true, false, Dilated),
    (5, 576, 96, true, false, One),
    (5, 576, 96, true, false, One),
];

/// The maps of `out_indices` that Lite R-ASPP reads; how far the windows of dilated blocks reach makes no difference to memory.
pub(super) fn third(cx: &Cx, image: &Tensor, small: bool) -> Vec<Tensor> {
    let (blocks, kept): (&[Third], [usize; 2]) = if small {
        (&SMALL, [0, 1])
    } else {
        (&LARGE, [1, 3])
    };
    let stem = Shape {
        window: window(16, 3, 1),
        stride: 2,
        groups: 1,
    };
    let mut x = padded(cx, "layer0", image, stem).pipe(hard_swish);
    let mut maps = Vec::new();
    for i in 0..=blocks.len() {
        if kept.contains(&i) {
            maps.push(x.clone());
        }
        x = cx.list_item("layer", i + 1, |cx| match blocks.get(i) {
            Some(block) => {
                let block = *block;
                cx.unary_block(Region::Convolutions, &x, move |cx, x| {
                    weighted(cx, x, block)
                })
            }
            None => {
                let wide = x.size(1) * 6;
                cx.conv_and_norm("conv", &x, point(wide)).pipe(hard_swish)
            }
        });
    }
    maps.push(x);
    maps
}

/// `InvertedResidualV3.forward`.
fn weighted(cx: &Cx, input: &Tensor, (kernel, wide, out, squeezes, relu, step): Third) -> Tensor {
    let act = |x: Tensor| if relu { x.relu_() } else { hard_swish(&x) };
    let mut y = input.clone();
    if wide != input.size(1) {
        y = act(cx.conv_and_norm("expand_conv", &y, point(wide)));
    }
    let stride = if step == Two { 2 } else { 1 };
    let deep = Shape {
        window: window(wide, kernel, 1),
        stride,
        groups: wide,
    };
    let conv = if step == One { normed } else { padded };
    y = act(conv(cx, "depthwise_conv", &y, deep));
    if squeezes {
        y = cx.module("se", |cx| {
            let mut scale = y.adaptive_avg_pool2d(1);
            let less = divisible(wide / 4);
            scale = cx.projection("conv1", &scale, less).relu_();
            scale = cx.projection("conv2", &scale, wide).hardsigmoid();
            y.mul(&scale)
        });
    }
    y = cx.conv_and_norm("linear_conv", &y, point(out));
    if stride == 1 && input.size(1) == out {
        input.add(&y)
    } else {
        y
    }
}

/// `nn.Hardswish`, in place.
fn hard_swish(x: &Tensor) -> Tensor {
    x.hardswish_()
}

/// `make_divisible(n, 8)`.
fn divisible(n: u64) -> u64 {
    let near = ((n + 4) / 8 * 8).max(8);
    if 10 * near < 9 * n { near + 8 } else { near }
}
