//! `LwDetrForObjectDetectionLoss` (loss/loss_lw_detr.py): each group's boxes are matched on the host with all objects.

use super::Scored;
use crate::nets::Cx;
use crate::nets::detection::loss::{corners, overlaps};
use crate::tape::{DType, Tensor};

/// Of the last layer, of all layers, and of the encoder's best places.
pub(super) fn loss(
    cx: &Cx,
    [last, all, first]: [&Scored; 3],
    targets: &Tensor,
    groups: u64,
) -> Tensor {
    let earlier = all.logits.size(0).saturating_sub(1);
    let mut sum = set_loss(cx, last, targets, groups);
    for _ in 0..earlier {
        if cx.tape.is_over_budget() {
            break;
        }
        let one = Scored {
            logits: all.logits.select(0),
            boxes: all.boxes.select(0),
        };
        sum = sum.add(&set_loss(cx, &one, targets, groups));
    }
    sum.add(&set_loss(cx, first, targets, groups))
}

fn set_loss(cx: &Cx, set: &Scored, targets: &Tensor, groups: u64) -> Tensor {
    cx.tape.no_grad(|| match_boxes(set, targets));
    let count = targets.size(0).saturating_mul(groups);
    let rows = || {
        let index = set.boxes.constant("cat", &[count], DType::I64);
        let flat = [set.boxes.size(0).saturating_mul(set.boxes.size(1)), 4];
        set.boxes.reshape(&flat).rows(&index)
    };
    let of_classes = focal(cx, &set.logits, &rows());
    let own = rows();
    let given = targets.constant("cat", &[count, 4], targets.dtype());
    let by_place = own.sub(&given).mean_all().pipe(Tensor::mul_scalar);
    let by_overlap = {
        let overlaps = overlaps(&corners(&own), &corners(&given), true);
        let diagonal = overlaps
            .reshape(&[count.saturating_mul(count)])
            .narrow(0, count);
        diagonal.mean_all().pipe(Tensor::mul_scalar)
    };
    of_classes.add(&by_place).pipe(|sum| sum.add(&by_overlap))
}

/// `loss_labels`: a cross entropy whose weights are how well a box fits, and the probability of other classes.
fn focal(cx: &Cx, logits: &Tensor, rows: &Tensor) -> Tensor {
    let dtype = logits.dtype();
    let found = cx.tape.no_grad(|| corners(&rows.detach()));
    let fits = cx.tape.no_grad(|| overlaps(&found, &found, false));
    drop(fits);
    let share = logits.sigmoid();
    let weights = logits.constant("zeros_like", logits.shape(), dtype);
    let others = share.pow().to(dtype);
    let right = {
        let negative = weights.constant("neg", logits.shape(), dtype);
        let logs = share.log();
        negative.mul(&logs)
    };
    let wrong = {
        let rest = share.neg();
        let logs = rest.log();
        others.mul(&logs)
    };
    let loss = right.sub(&wrong);
    drop((right, wrong, weights));
    loss.sum(&[0, 1, 2]).view(&[])
}

/// `LwDetrHungarianMatcher.forward`.
fn match_boxes(set: &Scored, targets: &Tensor) {
    let rows = set.logits.size(0).saturating_mul(set.logits.size(1));
    let index = targets.constant("cat", &[targets.size(0)], DType::I64);
    let shares = set.logits.reshape(&[rows, set.logits.size(2)]).sigmoid();
    let boxes = set.boxes.reshape(&[rows, 4]);
    let side = |first: &Tensor, second: &Tensor| {
        let power = first.pow().pipe(Tensor::mul_scalar);
        let log = second.add_scalar().pipe(Tensor::log).pipe(Tensor::neg);
        power.mul(&log)
    };
    let rest = || shares.neg().pipe(Tensor::add_scalar);
    let wrong = side(&shares, &rest());
    let right = side(&rest(), &shares);
    let by_class = {
        let parts = [right.columns(&index), wrong.columns(&index)];
        let [right, wrong] = &parts;
        right.sub(wrong)
    };
    let wide = boxes.to(DType::F32);
    let given = targets.to(DType::F32);
    let by_place = by_class.constant("cdist", by_class.shape(), DType::F32);
    let by_place = by_place.to(boxes.dtype());
    let by_overlap = overlaps(&corners(&wide), &corners(&given), true).pipe(Tensor::neg);
    let cost = {
        let first = by_place.mul_scalar();
        let second = by_class.mul_scalar();
        let sum = first.add(&second);
        drop((first, second));
        let third = by_overlap.mul_scalar();
        sum.add(&third)
    };
    let finite = cost.neg();
    drop((
        finite, cost, by_overlap, by_place, by_class, right, wrong, shares,
    ));
}
