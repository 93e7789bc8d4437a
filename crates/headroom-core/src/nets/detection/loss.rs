//! `ForObjectDetectionLoss` of transformers (loss/loss_for_object_detection.py): boxes are matched on the host, by costs that are
//! computed without a gradient; the loss of classes is over all queries, that of boxes over the matched ones.

use crate::nets::{Cx, Output};
use crate::tape::{DType, Tensor};

/// The loss and what the output holds.
pub(super) fn set_loss(cx: &Cx, logits: &Tensor, boxes: &Tensor, targets: &Tensor) -> Output {
    let loss = cx.module("loss", |_| {
        match_boxes(logits, targets);
        let classes = logits.constant("full", &[logits.size(0), logits.size(1)], DType::I64);
        let by_class = logits.transpose(1, 2).contiguous().cross_entropy(&classes);
        let index = targets.constant("cat", &[targets.size(0)], DType::I64);
        let rows = boxes
            .reshape(&[boxes.size(0).saturating_mul(boxes.size(1)), 4])
            .rows(&index);
        let difference = rows.sub(targets);
        let by_place = difference.mean_all().pipe(Tensor::mul_scalar);
        let by_overlap = {
            let corners = corners(&rows);
            let overlap = corners.mul(targets);
            overlap.mean_all().pipe(Tensor::mul_scalar)
        };
        by_class.add(&by_place).pipe(|sum| sum.add(&by_overlap))
    });
    Output {
        loss,
        held: vec![logits.clone(), boxes.clone()],
    }
}

/// `HungarianMatcher.forward`: the costs of each query for each object.
fn match_boxes(logits: &Tensor, targets: &Tensor) {
    let (queries, objects) = (
        logits.size(0).saturating_mul(logits.size(1)),
        targets.size(0),
    );
    let make = |op, shape: &[u64]| logits.constant(op, shape, DType::F32);
    let shares = make("softmax", &[queries, logits.size(2)]);
    let pairs = |op| make(op, &[queries, objects]);
    let sides = |op| make(op, &[queries, objects, 2]);
    let by_class = pairs("index");
    let by_place = pairs("cdist");
    let by_overlap = {
        let inner = (sides("max"), sides("min"), sides("clamp"));
        let overlap = (pairs("mul"), pairs("sub"), pairs("div"));
        drop(inner);
        let outer = (sides("min"), sides("max"), sides("clamp"));
        let area = pairs("mul");
        let cost = pairs("sub");
        drop((outer, area, overlap));
        cost
    };
    let total = pairs("add");
    drop((shares, by_class, by_place, by_overlap, total));
}

/// `center_to_corners_format`.
pub(super) fn corners(boxes: &Tensor) -> Tensor {
    let parts = boxes.unbind_along(-1);
    let ends: Vec<Tensor> = parts
        .iter()
        .map(|part| part.mul_scalar().unsqueeze(-1))
        .collect();
    match ends.split_first() {
        Some((first, rest)) => Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), -1),
        None => boxes.clone(),
    }
}

/// `box_iou` of each with each, or, of the smallest box around both, `generalized_box_iou`: `[N, M]`.
pub(super) fn overlaps(first: &Tensor, second: &Tensor, generalized: bool) -> Tensor {
    // The larger or smaller of two corners is as large as their sum.
    let corner = || {
        let first = first.narrow(1, 2).unsqueeze(1);
        first.add(&second.narrow(1, 2))
    };
    let area = || {
        let (start, end) = (corner(), corner());
        let sides = end.sub(&start).pipe(Tensor::clamp);
        sides.select(-1).mul(&sides.select(-1))
    };
    let (ratio, union) = {
        let inner = area();
        let own = |boxes: &Tensor| boxes.select(-1).mul(&boxes.select(-1));
        let sum = own(first).unsqueeze(1).add(&own(second));
        let union = sum.sub(&inner);
        drop(sum);
        (inner.div(&union), union)
    };
    if !generalized {
        return ratio;
    }
    let outer = area();
    let rest = outer.sub(&union).pipe(|rest| rest.div(&outer));
    ratio.sub(&rest)
}
