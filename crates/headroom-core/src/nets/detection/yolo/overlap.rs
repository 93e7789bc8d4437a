//! `bbox_iou` with `CIoU` (ultralytics/utils/metrics.py) of boxes by pairs, each `[N, 4]`.

use crate::tape::{Tape, Tensor};

/// The overlap of each pair, `[N, 1]`.
pub(super) fn complete(tape: &Tape, first: &Tensor, second: &Tensor) -> Tensor {
    let (a, b) = (first.chunk(4, -1), second.chunk(4, -1));
    let ([left_a, top_a, right_a, bottom_a], [left_b, top_b, right_b, bottom_b]) = (&a[..], &b[..])
    else {
        return first.clone();
    };
    let sides = |left: &Tensor, top: &Tensor, right: &Tensor, bottom: &Tensor| {
        let width = right.sub(left);
        let height = bottom.sub(top).pipe(Tensor::add_scalar);
        [width, height]
    };
    let [width_a, height_a] = sides(left_a, top_a, right_a, bottom_a);
    let [width_b, height_b] = sides(left_b, top_b, right_b, bottom_b);
    // From the outer ends to the inner ones, or the other way round: kernels of the same size.
    let between = |ends: [&Tensor; 2], starts: [&Tensor; 2]| {
        let (end, start) = (ends[0].extreme(ends[1]), starts[0].extreme(starts[1]));
        end.sub(&start)
    };
    let inner = {
        let width = between([right_a, right_b], [left_a, left_b]).pipe(Tensor::clamp);
        let height = between([bottom_a, bottom_b], [top_a, top_b]).pipe(Tensor::clamp);
        width.mul(&height)
    };
    let union = {
        let (area_a, area_b) = (width_a.mul(&height_a), width_b.mul(&height_b));
        let sum = area_a.add(&area_b);
        drop((area_a, area_b));
        sum.pipe(|sum| sum.sub(&inner)).pipe(Tensor::add_scalar)
    };
    let ratio = inner.div(&union);
    let width = between([right_a, right_b], [left_a, left_b]);
    let height = between([bottom_a, bottom_b], [top_a, top_b]);
    let squares = |x: &Tensor, y: &Tensor| {
        let (x, y) = (x.pow(), y.pow());
        x.add(&y)
    };
    let diagonal = squares(&width, &height).pipe(Tensor::add_scalar);
    let apart = {
        let along = |start_a: &Tensor, end_a: &Tensor, start_b: &Tensor, end_b: &Tensor| {
            let sum = start_b.add(end_b).pipe(|sum| sum.sub(start_a));
            sum.pipe(|sum| sum.sub(end_a))
        };
        let x = along(left_a, right_a, left_b, right_b);
        let y = along(top_a, bottom_a, top_b, bottom_b);
        squares(&x, &y).pipe(Tensor::mul_scalar)
    };
    let shape = {
        let angle = |width: &Tensor, height: &Tensor| width.div(height).pipe(Tensor::atan);
        let (second, first) = (angle(&width_b, &height_b), angle(&width_a, &height_a));
        let difference = second.sub(&first);
        difference.pipe(Tensor::pow).pipe(Tensor::mul_scalar)
    };
    let weight = tape.no_grad(|| {
        let rest = ratio.neg().pipe(|rest| rest.add(&shape));
        rest.pipe(Tensor::add_scalar).pipe(|rest| shape.div(rest))
    });
    let penalty = {
        let (place, form) = (apart.div(&diagonal), shape.mul(&weight));
        place.add(&form)
    };
    ratio.sub(&penalty)
}
