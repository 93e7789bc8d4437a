//! `APCHead` and `DMHead`: the map in the light of parts of itself.

use super::super::layers::{flat, joined, plane, point, three};
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// The map with what modules of several sizes make of it.
fn beside(
    cx: &Cx,
    list: &'static str,
    x: &Tensor,
    channels: u64,
    sides: [u64; 4],
    module: impl Fn(&Cx, u64) -> Tensor,
) -> Tensor {
    let one = |(i, side): (usize, u64)| cx.list_item(list, i, |cx| module(cx, side));
    let parts: Vec<Tensor> = sides.into_iter().enumerate().map(one).collect();
    let all = joined(x, &parts);
    drop(parts);
    cx.conv_module("bottleneck", &all, three(channels))
}

/// `APCHead`: each place's affinity with the means of parts.
pub(super) fn adaptive(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    beside(cx, "acm_modules", x, channels, [1, 2, 3, 6], |cx, side| {
        context(cx, x, channels, side)
    })
}

/// `ACM.forward` with `fusion=True`.
fn context(cx: &Cx, x: &Tensor, channels: u64, side: u64) -> Tensor {
    let [height, width] = plane(x);
    let n = x.size(0);
    let parts = x.adaptive_avg_pool2d(side);
    let own = cx.conv_module("input_redu_conv", x, point(channels));
    let parts = parts.pipe(|parts| cx.conv_module("pooled_redu_conv", parts, point(channels)));
    let parts = parts.pipe(|parts| flat(parts).transpose(1, 2).contiguous());
    let affinity = {
        let mean = own.adaptive_avg_pool2d(1);
        let whole = cx.conv_module("global_info", &mean, point(channels));
        let whole = whole.pipe(|whole| whole.interpolate(height, width));
        let sum = own.add(&whole);
        drop(whole);
        let places = side.saturating_mul(side);
        let logits = cx.projection("gla", &sum, places).permute(&[0, 2, 3, 1]);
        let rows = logits.reshape(&[n, height.saturating_mul(width), places]);
        rows.sigmoid()
    };
    let found = affinity.matmul(&parts);
    drop((affinity, parts));
    let found = found.pipe(|found| found.transpose(1, 2).contiguous());
    let found = found.view(&[n, channels, height, width]);
    let residual = cx.conv_module("residual_conv", &found, point(channels));
    drop(found);
    let sum = residual.add(&own);
    drop((residual, own));
    let out = sum.relu();
    drop(sum);
    cx.conv_module("fusion_conv", &out, point(channels))
}

/// `DMHead`: filters that are made of means of parts.
pub(super) fn filtered(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    beside(cx, "dcm_modules", x, channels, [1, 3, 5, 7], |cx, side| {
        filter(cx, x, channels, side)
    })
}

/// `DCM.forward` without fusion: a depthwise convolution of all pictures as one.
fn filter(cx: &Cx, x: &Tensor, channels: u64, side: u64) -> Tensor {
    let [height, width] = plane(x);
    let n = x.size(0);
    let all = n.saturating_mul(channels);
    let filters = x.adaptive_avg_pool2d(side);
    let filters = filters.pipe(|parts| cx.projection("filter_gen_conv", parts, channels));
    let own = cx.conv_module("input_redu_conv", x, point(channels));
    let rows = own.view(&[1, all, height, width]);
    let filters = filters.view(&[all, 1, side, side]);
    let border = side.saturating_sub(1);
    let padded = rows.pad_to(&[1, all, height + border, width + border]);
    drop((own, rows));
    let y = padded.convolution(&filters, None, Conv::default().grouped(all));
    drop((padded, filters));
    let y = y.view(&[n, channels, height, width]);
    cx.batch_norm("norm", &y).pipe(Tensor::relu_)
}
