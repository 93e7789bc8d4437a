//! `v8DetectionLoss` (ultralytics/utils/loss.py): the classes of all places, and the boxes of those that are to find an object.

use super::assigner::{Assigned, Counts, Predicted, assign};
use super::head::Found;
use super::{Generation, Yolo, masks, overlap};
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// Places that are candidates for an object (`tal_topk`), and of the second head.
pub(super) const CANDIDATES: u64 = 10;
const CANDIDATES_OF_SECOND: u64 = 7;

/// Places, and how far apart those of their map are.
struct Places {
    points: Tensor,
    strides: Tensor,
}

impl Yolo {
    /// The loss of a head, of which `kept` places find an object.
    pub(super) fn loss(&self, cx: &Cx, found: &Found, given: Option<&Tensor>, kept: u64) -> Tensor {
        let order = |x: &Tensor| x.permute(&[0, 2, 1]).contiguous();
        let weights = found.masks.as_ref().map(|masks| order(&masks.weights));
        let (sides, scores) = (order(&found.boxes), order(&found.scores));
        let (batch, places) = (scores.size(0), scores.size(1));
        let at = Places {
            points: scores.constant("cat", &[places, 2], scores.dtype()),
            strides: scores.constant("cat", &[places, 1], scores.dtype()),
        };
        let objects = self.pictures.objects;
        let table = batch.saturating_mul(objects).saturating_mul(places);
        let counts = Counts {
            batch,
            objects,
            places,
            classes: self.classes,
            pairs: (u128::from(table) * u128::from(self.covered_percent) / 100) as u64,
            kept: [
                if kept == CANDIDATES {
                    CANDIDATES
                } else {
                    CANDIDATES_OF_SECOND
                },
                kept,
            ],
        };
        let targets = scores.constant("zeros", &[batch, objects, 5], DType::F32);
        let boxes = self.decoded(cx, &sides, &at);
        let assigned = cx.tape.no_grad(|| {
            let shares = scores.detach().sigmoid();
            let wide = {
                let scaled = boxes.detach().mul(&at.strides);
                scaled.pipe(|scaled| scaled.to(DType::F32))
            };
            let given = Predicted {
                scores: &shares,
                boxes: &wide,
                objects: &targets,
            };
            assign(&cx.tape, &counts, &given)
        });
        let by_class = {
            // The sum that all are divided by.
            drop(cx.tape.no_grad(|| assigned.scores.sum(&[0, 1, 2])));
            let wanted = assigned.scores.to(scores.dtype());
            let each = wanted.pipe(|wanted| scores.bce_with_logits_each(wanted));
            each.pipe(|each| each.sum(&[0, 1, 2])).view(&[])
        };
        let count = batch.saturating_mul(objects).saturating_mul(kept);
        let by_box = self.of_boxes(cx, [&sides, &boxes], &at, &assigned, count);
        drop((sides, scores, boxes, targets, at));
        let Assigned {
            boxes,
            scores: wanted,
            _held,
        } = assigned;
        drop(wanted);
        let by_mask = match (&weights, &found.masks, given) {
            (Some(weights), Some(masks), Some(given)) => {
                let rows = objects.saturating_mul(kept);
                masks::loss(cx, weights, masks, given, &boxes, rows)
            }
            _ => None,
        };
        let sum = by_class.mul_scalar().add(&by_box);
        match by_mask {
            Some(by_mask) => sum.add(&by_mask),
            None => sum,
        }
    }

    /// `bbox_decode`: the sides of boxes as the expectation of their bins, and corners.
    fn decoded(&self, cx: &Cx, sides: &Tensor, at: &Places) -> Tensor {
        let bins = self.generation.bins();
        let distances = if bins > 1 {
            let shape = [sides.size(0), sides.size(1), 4, bins];
            let numbers = cx.buffer("proj", [bins], DType::F32);
            let shares = sides.view(&shape).softmax(None);
            shares.times_vector(&numbers)
        } else {
            sides.clone()
        };
        let ends = distances.chunk(2, -1);
        let corners: Vec<Tensor> = ends
            .iter()
            .enumerate()
            .map(|(i, end)| {
                if i == 0 {
                    at.points.sub(end)
                } else {
                    at.points.add(end)
                }
            })
            .collect();
        crate::nets::detection::joined(&corners, -1, sides)
    }

    /// `BboxLoss`: overlaps, and how the sides are distributed or, without bins, how far they are off.
    fn of_boxes(
        &self,
        cx: &Cx,
        [sides, boxes]: [&Tensor; 2],
        at: &Places,
        assigned: &Assigned,
        count: u64,
    ) -> Tensor {
        let rows = |x: &Tensor, index: &Tensor| {
            let flat = [x.size(0).saturating_mul(x.size(1)), x.size(2)];
            x.reshape(&flat).rows(index)
        };
        let wanted = assigned.boxes.div(&at.strides);
        let both = wanted.constant("nonzero", &[2, count], DType::I64);
        let index = both.narrow(0, 1).view(&[count]);
        let weight = cx.tape.no_grad(|| {
            let own = rows(&assigned.scores, &index);
            own.sum(&[-1])
        });
        let by_overlap = {
            let (own, given) = (rows(boxes, &index), rows(&wanted, &index));
            let ratio = overlap::complete(&cx.tape, &own, &given);
            let rest = ratio.neg().pipe(Tensor::add_scalar);
            rest.mul(&weight).sum(&[0, 1]).view(&[])
        };
        let distances = cx.tape.no_grad(|| {
            let ends = wanted.chunk(2, -1);
            let parts: Vec<Tensor> = ends.iter().map(|end| at.points.sub(end)).collect();
            crate::nets::detection::joined(&parts, -1, &wanted)
        });
        let by_side = match self.generation {
            Generation::Eight | Generation::Eleven => {
                let bins = self.generation.bins();
                let own = rows(sides, &index).view(&[count.saturating_mul(4), bins]);
                let given = rows(&distances, &index);
                let left = given.constant("to", &[count.saturating_mul(4), 1], DType::I64);
                let logs = crate::tape::ops::log_softmax(&own);
                let at_side = |place: &Tensor| {
                    let found = logs.gather(place).view(given.shape());
                    found.mul(&given)
                };
                let right = left.constant("add", left.shape(), DType::I64);
                at_side(&left).add(&at_side(&right)).neg().mean(&[-1])
            }
            Generation::TwentySix => {
                let scaled = distances.mul(&at.strides);
                let own = sides.mul(&at.strides);
                let own = rows(&own, &index).sub(&rows(&scaled, &index));
                own.abs().mean(&[-1])
            }
        };
        let by_side = by_side.mul(&weight).sum(&[0, 1]).view(&[]);
        by_overlap.mul_scalar().add(&by_side.mul_scalar())
    }
}
