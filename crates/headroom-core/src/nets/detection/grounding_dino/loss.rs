//! `GroundingDinoForObjectDetectionLoss` (loss/loss_grounding_dino.py): of the last layer and of the first stage.

use super::GroundingDino;
use crate::nets::Cx;
use crate::nets::detection::loss::{corners, overlaps};
use crate::tape::{DType, Tensor};

impl GroundingDino {
    pub(super) fn loss(
        &self,
        cx: &Cx,
        last: &[Tensor; 2],
        first: &[Tensor; 2],
        targets: &Tensor,
    ) -> Tensor {
        let [scores, _] = last;
        // Which columns have a word.
        let valid = scores.constant("to", scores.shape(), DType::Bool);
        let own = self.of_set(cx, last, targets, &valid);
        own.add(&self.of_set(cx, first, targets, &valid))
    }

    fn of_set(
        &self,
        cx: &Cx,
        [scores, boxes]: &[Tensor; 2],
        targets: &Tensor,
        valid: &Tensor,
    ) -> Tensor {
        cx.tape.no_grad(|| match_boxes(scores, boxes, targets));
        let rows = scores.size(0).saturating_mul(scores.size(1));
        let named = scores.constant("zeros", scores.shape(), DType::I64);
        let count = rows.saturating_mul(self.tokens);
        let own = scores.masked_select(valid, count);
        let target = scores.constant("masked_select", &[count], DType::F32);
        drop(named);
        let of_words = {
            let share = own.sigmoid();
            let entropy = own.bce_with_logits(&target);
            let right = share.mul(&target);
            let factor = right.pow();
            factor
                .mean_all()
                .pipe(|factor| entropy.mul(factor))
                .keeping(&[share, right])
        };
        let index = boxes.constant("cat", &[targets.size(0)], DType::I64);
        let found = boxes
            .reshape(&[boxes.size(0).saturating_mul(boxes.size(1)), 4])
            .rows(&index);
        let by_place = found.sub(targets).mean_all();
        let by_overlap = overlaps(&corners(&found), &corners(targets), true).mean_all();
        of_words.add(&by_place).pipe(|sum| sum.add(&by_overlap))
    }
}

/// `GroundingDinoHungarianMatcher.forward`.
fn match_boxes(scores: &Tensor, boxes: &Tensor, targets: &Tensor) {
    let rows = scores.size(0).saturating_mul(scores.size(1));
    let columns = scores.size(2);
    let share = scores.reshape(&[rows, columns]).sigmoid();
    let side = |first: &Tensor, second: &Tensor| {
        let power = first.pow().pipe(Tensor::mul_scalar);
        let log = second.add_scalar().pipe(Tensor::log).pipe(Tensor::neg);
        power.mul(&log)
    };
    let rest = share.neg().pipe(Tensor::add_scalar);
    let (wrong, right) = (side(&share, &rest), side(&rest, &share));
    drop(rest);
    let names = targets.constant("div", &[columns, targets.size(0)], DType::F32);
    let by_class = right.sub(&wrong).pipe(|cost| cost.matmul(&names));
    let flat = boxes.reshape(&[rows, 4]);
    let by_place = by_class.constant("cdist", by_class.shape(), DType::F32);
    let by_overlap = overlaps(&corners(&flat), &corners(targets), true);
    let cost = by_place.add(&by_class).pipe(|sum| sum.add(&by_overlap));
    drop((cost, by_overlap, by_place, by_class, right, wrong, share));
}
