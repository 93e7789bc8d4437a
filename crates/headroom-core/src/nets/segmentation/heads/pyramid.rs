//! `FPN` and `FPNHead` (Semantic FPN): a pyramid of maps, each brought to the finest one's size and added up.

use super::super::backbone::Maps;
use super::super::layers::{Labels, plane, three};
use super::DROPOUT;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Channels of the pyramid and of the head.
const WIDE: u64 = 256;
const HEAD: u64 = 128;

pub(super) fn losses(cx: &Cx, maps: &Maps, labels: &Labels) -> Vec<Tensor> {
    let pyramid = cx.module("neck", |cx| pyramid(cx, maps));
    vec![cx.module("decode_head", |cx| {
        labels.loss(&logits(cx, &pyramid, labels.classes, DROPOUT))
    })]
}

/// `FPN.forward` without norms.
pub(super) fn pyramid(cx: &Cx, maps: &Maps) -> Vec<Tensor> {
    let module = |cx: &Cx, list, i, x: &Tensor, kernel: u64| {
        cx.list_item(list, i, |cx| {
            let form = Conv::stride(1).padded(kernel / 2);
            cx.conv2d("conv", x, WIDE, kernel, form, true)
        })
    };
    let all: Vec<&Tensor> = maps.iter().collect();
    let mut laterals: Vec<Tensor> = (all.iter().enumerate())
        .map(|(i, map)| module(cx, "lateral_convs", i, map, 1))
        .collect();
    for i in (1..laterals.len()).rev() {
        let (Some(own), Some(above)) = (laterals.get(i - 1), laterals.get(i)) else {
            continue;
        };
        let [height, width] = plane(own);
        let larger = above.interpolate(height, width);
        let sum = own.add_(&larger);
        if let Some(place) = laterals.get_mut(i - 1) {
            *place = sum;
        }
    }
    (laterals.iter().enumerate())
        .map(|(i, map)| module(cx, "fpn_convs", i, map, 3))
        .collect()
}

/// `FPNHead.forward`.
pub(super) fn logits(cx: &Cx, pyramid: &[Tensor], classes: u64, dropout: f64) -> Tensor {
    let mut sum: Option<Tensor> = None;
    for (i, map) in pyramid.iter().enumerate() {
        let scaled = cx.list_item("scale_heads", i, |cx| {
            let mut x = map.clone();
            for k in 0..i.max(1) {
                let name = index_name(if i == 0 { k } else { 2 * k });
                x = cx.conv_module(name, &x, three(HEAD));
                if i > 0 {
                    x = x.interpolate(2 * x.size(2), 2 * x.size(3));
                }
            }
            x
        });
        sum = Some(match sum {
            None => scaled,
            Some(sum) => {
                let [height, width] = plane(&sum);
                let same = scaled.interpolate(height, width);
                drop(scaled);
                sum.add(&same)
            }
        });
    }
    match sum {
        Some(sum) => cx.classified(&sum, classes, dropout),
        None => cx.tape.empty("logits", [0; 0], cx.env.weights),
    }
}
