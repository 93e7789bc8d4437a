//! `ASPPHead`, `DepthwiseSeparableASPPHead` and `LRASPPHead`: dilated convolutions side by side.

use super::super::backbone::Maps;
use super::super::layers::{joined, plane, point, three, window};
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// `dilations`. How wide the windows are makes no difference to memory.
const DILATIONS: [u64; 4] = [1, 12, 24, 36];

pub(super) fn pooled(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    let all = branches(cx, x, channels, |cx, name, x, dilation| {
        cx.conv_module(name, x, window(channels, 3, dilation))
    });
    cx.conv_module("bottleneck", &all, three(channels))
}

/// The map's mean, a convolution of one place and dilated ones, together.
fn branches(
    cx: &Cx,
    x: &Tensor,
    channels: u64,
    dilated: impl Fn(&Cx, &'static str, &Tensor, u64) -> Tensor,
) -> Tensor {
    let [height, width] = plane(x);
    let mean = cx.module("image_pool", |cx| {
        let mean = x.adaptive_avg_pool2d(1);
        cx.conv_module("1", &mean, point(channels))
    });
    let mean = mean.pipe(|mean| mean.interpolate(height, width));
    let windows = cx.module("aspp_modules", |cx| {
        let branch = |(i, dilation): (usize, u64)| match dilation {
            1 => cx.conv_module(index_name(i), x, point(channels)),
            wide => dilated(cx, index_name(i), x, wide),
        };
        DILATIONS
            .into_iter()
            .enumerate()
            .map(branch)
            .collect::<Vec<_>>()
    });
    joined(&mean, &windows)
}

/// The same with separable convolutions, and the finest map beside the result (DeepLabV3+).
pub(super) fn separable(cx: &Cx, maps: &Maps, channels: u64) -> Tensor {
    let all = branches(cx, maps.last(), channels, |cx, name, x, dilation| {
        cx.separable(name, x, window(channels, 3, dilation))
    });
    let coarse = cx.conv_module("bottleneck", &all, three(channels));
    drop(all);
    // `c1_channels` of r50 and r18.
    let few = if channels < 512 { 12 } else { 48 };
    let fine = cx.module("c1_bottleneck", |cx| {
        let first = maps.first();
        let x = cx.conv2d("conv", first, few, 1, Conv::default(), false);
        cx.batch_norm("bn", &x).pipe(Tensor::relu_)
    });
    let [height, width] = plane(&fine);
    let coarse = coarse.pipe(|coarse| coarse.interpolate(height, width));
    let both = joined(&coarse, &[fine]);
    drop(coarse);
    cx.module("sep_bottleneck", |cx| {
        let x = cx.separable("0", &both, three(channels));
        cx.separable("1", &x, three(channels))
    })
}

/// Lite R-ASPP: the last map weighed by its own means, with two finer ones.
pub(super) fn lite(cx: &Cx, maps: &Maps, channels: u64) -> Tensor {
    let last = maps.last();
    let [height, width] = plane(last);
    let own = cx.conv_module("aspp_conv", last, point(channels));
    let weights = cx.module("image_pool", |cx| {
        // `AvgPool2d(49, stride=(16, 20))`.
        let steps = |side: u64, stride: u64| side.saturating_sub(49) / stride + 1;
        let pooled = last.avg_pool2d_to(steps(height, 16), steps(width, 20));
        cx.module("1", |cx| {
            let x = cx.conv2d("conv", &pooled, channels, 1, Conv::default(), false);
            x.sigmoid()
        })
    });
    let weights = weights.pipe(|weights| weights.interpolate(height, width));
    let mut x = own.mul(&weights);
    drop((own, weights));
    x = cx.projection("conv_up_input", &x, channels);
    let finer: Vec<&Tensor> = maps.iter().take(2).collect();
    for (i, map) in finer.into_iter().enumerate().rev() {
        let [height, width] = plane(map);
        x = x.interpolate(height, width);
        let branch = cx.module("convs", |cx| {
            let (name, out) = if i == 0 { ("conv0", 32) } else { ("conv1", 64) };
            cx.conv2d(name, map, out, 1, Conv::default(), false)
        });
        x = joined(&x, &[branch]);
        x = cx.module("conv_ups", |cx| {
            let name = if i == 0 { "conv_up0" } else { "conv_up1" };
            cx.conv_module(name, &x, point(channels))
        });
    }
    x
}
