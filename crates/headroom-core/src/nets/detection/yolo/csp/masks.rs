//! Masks of objects (`Segment` of models/yolo.py, `single_mask_loss` of utils/segment/loss.py): each is a sum of maps, weighted by
//! numbers that its place predicts.

use super::super::blocks::Unit;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `nm`: the maps.
pub(super) const MAPS: u64 = 32;
/// `npr`: the width before them.
pub(super) const WIDTH: u64 = 256;

/// `Proto`: maps of twice the finest one's size.
pub(super) fn prototypes(cx: &Cx, map: &Tensor, width: u64) -> Tensor {
    Unit::new(width, 3)
        .run(cx, "cv1", map)
        .pipe(|x| x.interpolate(2 * x.size(2), 2 * x.size(3)))
        .pipe(|x| Unit::new(width, 3).run(cx, "cv2", x))
        .pipe(|x| Unit::new(MAPS, 1).run(cx, "cv3", x))
}

/// The losses of a map's matches, whose numbers are `[matches, maps]` and whose maps `[B, maps, height, width]`, one picture after the other, each with `rows` of them.
pub(super) fn losses(cx: &Cx, weights: &Tensor, prototypes: &Tensor, rows: u64) -> Vec<Tensor> {
    let mut losses = Vec::new();
    let [height, width] = [2, 3].map(|axis| prototypes.size(axis));
    for _ in 0..prototypes.size(0) {
        if cx.tape.is_over_budget() {
            break;
        }
        let make = |op, shape: &[u64], dtype| weights.constant(op, shape, dtype);
        let wanted = {
            let same = make("eq", &[rows, height, width], DType::Bool);
            let wanted = make("where", &[rows, height, width], DType::F32);
            drop(same);
            wanted
        };
        let index = make("nonzero", &[rows], DType::I64);
        let own = weights.rows(&index);
        let map = prototypes
            .select(0)
            .view(&[MAPS, height.saturating_mul(width)]);
        let found = own.matmul_by(&map).view(&[rows, height, width]);
        let each = found.bce_with_logits_each(&wanted);
        let inside = {
            let side = make("ge", &[rows, height, width], DType::Bool);
            let inside = make("mul", &[rows, height, width], DType::Bool);
            drop(side);
            inside
        };
        let cropped = each.mul(&inside);
        drop((each, found, own));
        let mean = cropped.mean(&[1, 2]).view(&[rows]);
        let area = make("index", &[rows], DType::F32);
        losses.push(mean.div(&area).mean_all());
    }
    losses
}
