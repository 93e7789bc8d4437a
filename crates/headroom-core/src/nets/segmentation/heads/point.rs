//! `PointHead` (PointRend): the places that a first head is least sure of, classified by a small network.

use super::super::backbone::Maps;
use super::super::layers::{Labels, joined};
use super::pyramid::{logits, pyramid};
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `num_points`, `oversample_ratio`, `channels` and `num_fcs`.
const POINTS: u64 = 2048;
const SAMPLED: u64 = 3 * POINTS;
const WIDE: u64 = 256;
const LAYERS: usize = 3;

pub(super) fn losses(cx: &Cx, maps: &Maps, labels: &Labels) -> Vec<Tensor> {
    let classes = labels.classes;
    let pyramid = cx.module("neck", |cx| pyramid(cx, maps));
    let coarse = || cx.list_item("decode_head", 0, |cx| logits(cx, &pyramid, classes, 0.0));
    let loss = labels.loss(&coarse());
    // `CascadeEncoderDecoder` runs it again for its logits.
    let coarse = coarse();
    let n = coarse.size(0);
    let at = |x: &Tensor, points: u64| {
        let grid = x.constant("points", &[n, points, 1, 2], DType::F32);
        x.grid_sample(&grid).squeeze(3)
    };
    cx.tape.no_grad(|| {
        let sampled = at(&coarse, SAMPLED);
        let (_highest, _places) = sampled.transpose(1, 2).topk(2);
    });
    let Some(finest) = pyramid.first() else {
        return vec![loss];
    };
    let (fine, rough) = (at(finest, POINTS), at(&coarse, POINTS));
    let point_logits = cx.list_item("decode_head", 1, |cx| {
        let mut x = joined(&fine, std::slice::from_ref(&rough));
        for i in 0..LAYERS {
            x = cx.list_item("fcs", i, |cx| line(cx, "conv", &x, WIDE).relu());
            x = joined(&x, std::slice::from_ref(&rough));
        }
        line(cx, "fc_seg", &x, classes)
    });
    let places = point_logits.constant("long", &[n, POINTS], DType::I64);
    vec![loss, labels.of_places(&point_logits, &places)]
}

/// `nn.Conv1d(…, 1)`.
fn line(cx: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
    cx.convolution(name, x, out, &[1], crate::tape::ops::Conv::default(), true)
}
