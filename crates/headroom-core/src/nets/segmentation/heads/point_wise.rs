//! `PSAHead`: every place says how much it attends to each place around it, and how much it is attended to.

use super::super::layers::{flat, joined, plane, point, three};
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// `mask_size`: places around one.
const AROUND: u64 = 97 * 97;

pub(super) fn features(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    let collected = way(cx, ["reduce", "attention"], x, channels);
    let spread = way(cx, ["reduce_p", "attention_p"], x, channels);
    let both = joined(&collected, &[spread]);
    drop(collected);
    let [height, width] = plane(x);
    // A convolution of one place that is padded by one.
    let form = Conv::default().padded(1);
    let out = cx.formed_conv_and_norm("proj", &both, point(x.size(1)), form);
    drop(both);
    let out = out.pipe(Tensor::relu_);
    let out = out.pipe(|out| out.interpolate(height, width));
    let all = joined(x, &[out]);
    cx.conv_module("bottleneck", &all, three(channels))
}

/// One direction, on a map of half the side (`shrink_factor`).
fn way(cx: &Cx, [reduce, attention]: [&'static str; 2], x: &Tensor, channels: u64) -> Tensor {
    let n = x.size(0);
    let own = cx.conv_module(reduce, x, point(channels));
    let [height, width] = plane(&own).map(|side| side.div_ceil(2));
    let small = own.pipe(|own| own.interpolate(height, width));
    let weights = cx.module(attention, |cx| {
        let y = cx.conv_module("0", &small, point(channels));
        cx.conv2d("1", &y, AROUND, 1, Conv::default(), false)
    });
    let places = height.saturating_mul(width);
    // `PSAMask`: of the places around one those that are on the map.
    let weights = weights.pipe(|weights| weights.psa_mask([n, places, height, width]));
    let weights = weights.pipe(|weights| weights.softmax(None));
    let found = flat(&small).bmm(&flat(&weights));
    drop((small, weights));
    let found = found.view(&[n, channels, height, width]);
    found.mul_scalar()
}
