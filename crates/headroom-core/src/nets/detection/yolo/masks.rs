//! `v8SegmentationLoss.calculate_segmentation_loss` (ultralytics/utils/loss.py): one picture after the other, the mask of each place that
//! is to find an object against that object's.

use super::head::Masks;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// How often masks are smaller than pictures along a side (`mask_ratio`).
pub(super) const RATIO: u64 = 4;

/// The loss of the masks, of which `rows` places of a picture find an object in boxes `[B, places, 4]`.
pub(super) fn loss(
    cx: &Cx,
    weights: &Tensor,
    found: &Masks,
    given: &Tensor,
    boxes: &Tensor,
    rows: u64,
) -> Option<Tensor> {
    let wide = given.to(DType::F32);
    let [height, width] = [2, 3].map(|axis| found.maps.size(axis));
    let normal = boxes.mul_scalar();
    let area = {
        let centres = normal.constant("cat", normal.shape(), normal.dtype());
        centres.constant("prod", &[boxes.size(0), boxes.size(1)], normal.dtype())
    };
    let corners = normal.mul_scalar();
    let pictures = weights.unbind().into_iter().zip(found.maps.unbind());
    let mut sum: Option<Tensor> = None;
    for (weights, maps) in pictures {
        if cx.tape.is_over_budget() {
            break;
        }
        let index = weights.constant("nonzero", &[rows], DType::I64);
        let object = index.constant("index", &[rows], DType::I64);
        let truth = {
            let same = wide.constant("eq", &[rows, height, width], DType::Bool);
            let truth = same.constant("to", &[rows, height, width], DType::F32);
            drop(same);
            truth
        };
        let own = weights.rows(&index);
        let (corner, share) = (
            corners.constant("index", &[rows, 4], corners.dtype()),
            area.constant("index", &[rows], area.dtype()),
        );
        let mask = own.einsum("in", &maps, "nhw", "ihw");
        let each = mask.bce_with_logits_each(&truth);
        let cut = |x: &Tensor, shape: [u64; 3]| {
            let inside = corner.constant("mul", &shape, DType::Bool);
            x.mul_buffer_(&inside)
        };
        let cropped = cut(&each, [rows, 1, width]).pipe(|x| cut(x, [rows, height, 1]));
        drop(each);
        let mean = cropped.mean(&[1, 2]).view(&[rows]);
        let loss = mean.div(&share).sum(&[0]).view(&[]);
        drop((object, own, mask, cropped));
        sum = Some(match sum {
            Some(sum) => sum.add(&loss),
            None => loss,
        });
    }
    sum.map(|sum| sum.mul_scalar())
}
