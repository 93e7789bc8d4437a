//! Heads over regions: pooled maps, boxes, masks (mmdet/models/roi_heads, detectron2/modeling/roi_heads).

use super::trunk::Norm;
use crate::nets::Cx;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Maps of regions of so many places a side, each from the map that fits its size: `zeros`, then a part for each map.
pub(super) fn pooled(maps: &[Tensor], image: &Tensor, count: u64, side: u64) -> Tensor {
    let used = maps.len().min(4) as u64;
    let first = maps.first().unwrap_or(image);
    if used < 2 {
        let own = first.constant("rois", &[count, 5], DType::F32);
        return first.roi_align(&own, side);
    }
    let shape = [count, first.size(1), side, side];
    let rois = first.constant("cat", &[count, 5], DType::F32);
    let mut all = first.constant("zeros", &shape, first.dtype());
    for (i, map) in maps.iter().take(used as usize).enumerate() {
        let share = (count + used - 1 - i as u64) / used;
        let index = rois.constant("nonzero", &[share], DType::I64);
        let own = rois.constant("index", &[share, 5], DType::F32);
        let found = map.roi_align(&own, side);
        all = all.put_where(&index, &found);
    }
    all
}

/// Classes and boxes of pooled regions: two wide layers, or with group norm four convolutions and one.
pub(super) fn boxes(cx: &Cx, x: &Tensor, classes: u64, per_class: bool, norm: Norm) -> [Tensor; 2] {
    const WIDE: u64 = 1024;
    let mut x = x.clone();
    if norm == Norm::Group {
        for i in 0..4 {
            x = cx.list_item("shared_convs", i, |cx| {
                let y = cx.conv2d("conv", &x, 256, 3, Conv::stride(1).padded(1), false);
                norm.apply(cx, "gn", &y).pipe(Tensor::relu_)
            });
        }
    }
    x = x.flattened_from_one();
    let layers = if norm == Norm::Group { 1 } else { 2 };
    for i in 0..layers {
        x = cx.list_item("shared_fcs", i, |cx| {
            cx.linear("fc", &x, WIDE, true).relu_()
        });
    }
    predicted(cx, &x, classes, per_class)
}

pub(super) fn predicted(cx: &Cx, x: &Tensor, classes: u64, per_class: bool) -> [Tensor; 2] {
    let moves = if per_class {
        classes.saturating_mul(4)
    } else {
        4
    };
    [
        cx.linear("fc_cls", x, classes.saturating_add(1), true),
        cx.linear("fc_reg", x, moves, true),
    ]
}

/// The cross-entropy of classes, and of the boxes of a quarter of the regions.
pub(super) fn box_losses([scores, moved]: &[Tensor; 2]) -> Vec<Tensor> {
    let count = scores.size(0);
    let labels = scores.constant("labels", &[count], DType::I64);
    let by_class = scores
        .cross_entropy_unreduced(&labels)
        .pipe(Tensor::mean_all);
    let index = moved.constant("nonzero", &[(count / 4).max(1)], DType::I64);
    let own = moved.rows(&index);
    let target = own.constant("targets", own.shape(), DType::F32);
    let by_place = own.sub(&target).pipe(Tensor::abs).pipe(Tensor::mean_all);
    vec![by_class, by_place]
}

/// `FCNMaskHead`: four convolutions, twice the side, a mask for each class.
pub(super) fn masks(cx: &Cx, x: &Tensor, classes: u64, norm: Norm) -> Tensor {
    let mut x = x.clone();
    for i in 0..4 {
        x = cx.list_item("convs", i, |cx| {
            let form = Conv::stride(1).padded(1);
            if norm == Norm::Group {
                let y = cx.conv2d("conv", &x, 256, 3, form, false);
                norm.apply(cx, "gn", &y).pipe(Tensor::relu_)
            } else {
                cx.conv2d("conv", &x, 256, 3, form, true).relu_()
            }
        });
    }
    let twice = Conv {
        transposed: Some(0),
        ..Conv::stride(2)
    };
    x = cx.conv2d("upsample", &x, 256, 2, twice, true).relu_();
    cx.conv2d("conv_logits", &x, classes, 1, Conv::default(), true)
}

/// `mask_cross_entropy`: of each region the mask of its class.
pub(super) fn mask_loss(masks: &Tensor) -> Tensor {
    let (count, side) = (masks.size(0), masks.size(2));
    let places = side.saturating_mul(masks.size(3));
    let flat = masks.reshape(&[count, masks.size(1), places]);
    let index = masks.constant("arange", &[count], DType::I64);
    let own = flat.picked(&index, &index);
    let target = own.constant("mask_targets", own.shape(), DType::F32);
    own.bce_with_logits(&target)
}
