//! `DeformableDetrForObjectDetectionLoss` (loss/loss_deformable_detr.py): a focal loss of all queries, boxes of the matched ones.

use crate::nets::Cx;
use crate::nets::detection::loss::{corners, overlaps};
use crate::nets::detection::rt_detr::match_boxes;
use crate::tape::Tensor;

pub(super) fn loss(cx: &Cx, [logits, boxes]: [&Tensor; 2], targets: &Tensor) -> Tensor {
    cx.tape.no_grad(|| match_boxes(logits, boxes, targets));
    let of_classes = focal(logits);
    let index = boxes.constant("cat", &[targets.size(0)], crate::tape::DType::I64);
    let rows = boxes
        .reshape(&[boxes.size(0).saturating_mul(boxes.size(1)), 4])
        .rows(&index);
    let by_place = rows.sub(targets).mean_all().pipe(Tensor::mul_scalar);
    let by_overlap = overlaps(&corners(&rows), &corners(targets), true).mean_all();
    of_classes.add(&by_place).pipe(|sum| sum.add(&by_overlap))
}

/// `sigmoid_focal_loss`, an operation at a time.
fn focal(logits: &Tensor) -> Tensor {
    let target = logits.constant("scatter", logits.shape(), logits.dtype());
    let share = logits.sigmoid();
    let entropy = logits.bce_with_logits_each(&target);
    let rest = target.constant("rsub", target.shape(), target.dtype());
    let right = {
        let own = share.mul(&target);
        let other = share.neg().pipe(|wrong| wrong.mul(&rest));
        own.add(&other)
    };
    let factor = right.neg().pipe(Tensor::pow);
    let weighted = entropy.mul(&factor);
    let alpha = target.constant("add", target.shape(), target.dtype());
    let loss = alpha.mul(&weighted);
    drop((right, factor, weighted, entropy, share, rest));
    loss.mean(&[1]).mean_all().pipe(Tensor::mul_scalar)
}
