//! `YOLOXHead` of MMYOLO (mmyolo/models/dense_heads/yolox_head.py) with mmdet's `SimOTAAssigner`: one box at every place, whose object is
//! chosen by costs of all pairs, one picture after the other.

use super::super::blocks::Unit;
use super::super::joined;
use super::super::layers::Layers;
use super::Csp;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// The pyramid's outputs and the heads, before they are scaled.
const WIDTH: u64 = 256;
/// Places that an object is assigned to at most (`candidate_topk`).
const CANDIDATES: u64 = 10;
/// Places around an object's centre along a side (`center_radius` of 2.5).
const AROUND: u64 = 5;

/// Scores, boxes and objectness, flattened over all maps: `[B, places, …]`.
struct Predicted {
    scores: Tensor,
    boxes: Tensor,
    objectness: Tensor,
}

impl Csp {
    pub(super) fn free(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let maps = cx.module("backbone", |cx| {
            let mut layers = Layers::new(cx);
            self.maps(&mut layers, image)
        });
        let width = self.scale.channels(WIDTH);
        let found = cx.module("bbox_head", |cx| {
            let each = maps.iter().enumerate().map(|(i, map)| {
                let narrowed =
                    cx.list_item("out_layers", i, |cx| Unit::new(width, 1).run_here(cx, map));
                self.head_of(cx, i, &narrowed, width)
            });
            each.collect::<Vec<_>>()
        });
        let loss = self.free_loss(cx, &found, image);
        drop((maps, found));
        loss
    }

    /// Scores, boxes and objectness of a map.
    fn head_of(&self, cx: &Cx, i: usize, map: &Tensor, width: u64) -> [Tensor; 3] {
        let stacked = |name| {
            cx.module(name, |cx| {
                cx.module(index_name(i), |cx| {
                    Unit::new(width, 3)
                        .run(cx, "0", map)
                        .pipe(|x| Unit::new(width, 3).run(cx, "1", x))
                })
            })
        };
        let last = |name, x: &Tensor, out| {
            cx.module(name, |cx| {
                cx.conv2d(index_name(i), x, out, 1, Conv::stride(1), true)
            })
        };
        let of_classes = stacked("multi_level_cls_convs");
        let of_boxes = stacked("multi_level_reg_convs");
        [
            last("multi_level_conv_cls", &of_classes, self.classes),
            last("multi_level_conv_reg", &of_boxes, 4),
            last("multi_level_conv_obj", &of_boxes, 1),
        ]
    }

    fn free_loss(&self, cx: &Cx, found: &[[Tensor; 3]], image: &Tensor) -> Tensor {
        let flat = |part: usize| {
            let each: Vec<Tensor> = found
                .iter()
                .filter_map(|parts| parts.get(part))
                .map(|x| {
                    let places = x.size(2).saturating_mul(x.size(3));
                    let shape = [x.size(0), places, x.size(1)];
                    x.permute(&[0, 2, 3, 1]).reshape(&shape)
                })
                .collect();
            joined(&each, 1, image)
        };
        let (scores, sides, objectness) = (flat(0), flat(1), flat(2));
        let boxes = decoded(&sides);
        let all = Predicted {
            scores,
            boxes,
            objectness,
        };
        let [batch, places] = [0, 1].map(|axis| all.scores.size(axis));
        let own = self.pictures.objects.saturating_mul(CANDIDATES).min(places);
        let matched = batch.saturating_mul(own);
        let targets: Vec<[Tensor; 4]> = (0..batch)
            .take_while(|_| !cx.tape.is_over_budget())
            .map(|_| cx.tape.no_grad(|| self.assigned(&all, own)))
            .collect();
        let make = |op, shape: &[u64], dtype| all.scores.constant(op, shape, dtype);
        let mask = make("cat", &[batch.saturating_mul(places)], DType::Bool);
        let of_classes = make("cat", &[matched, self.classes], DType::F32);
        let of_objects = make(
            "cat",
            &[batch.saturating_mul(places), 1],
            all.objectness.dtype(),
        );
        let of_boxes = make("cat", &[matched, 4], DType::F32);
        drop(targets);
        let everywhere = batch.saturating_mul(places);
        let by_object = all
            .objectness
            .view(&[everywhere, 1])
            .bce_with_logits(&of_objects);
        let rows = |x: &Tensor| x.view(&[everywhere, x.size(-1)]).rows_where(&mask, matched);
        let by_class = rows(&all.scores).bce_with_logits(&of_classes);
        let by_box = rows(&all.boxes).sub(&of_boxes).pipe(Tensor::pow).mean_all();
        by_class.add(&by_box).pipe(|sum| sum.add(&by_object))
    }

    /// `_get_targets_single`: what a picture's places are compared with. Candidates are places in an object's box or near its centre.
    fn assigned(&self, all: &Predicted, own: u64) -> [Tensor; 4] {
        let places = all.scores.size(1);
        let objects = self.pictures.objects;
        let dtype = all.scores.dtype();
        let make = |op, shape: &[u64], dtype| all.scores.constant(op, shape, dtype);
        let scores = {
            let classes = make("sigmoid", &[places, self.classes], dtype);
            let object = make("sigmoid", &[places, 1], dtype);
            let product = make("mul", &[places, self.classes], dtype);
            drop((classes, object));
            product
        };
        let maps = 3;
        let candidates = objects.saturating_mul(AROUND * AROUND * maps).min(places);
        let pairs = [candidates, objects];
        let overlaps = make("div", &pairs, DType::F32);
        let costs = {
            let table = [candidates, objects, self.classes];
            let hot = make("repeat", &table, DType::F32);
            let chosen = make("repeat", &table, dtype);
            let wide = make("to", &table, DType::F32);
            let each = make("binary_cross_entropy", &table, DType::F32);
            let cost = make("sum", &pairs, DType::F32);
            drop((hot, chosen, wide, each));
            cost
        };
        let matching = make("full_like", &pairs, DType::U8);
        drop((overlaps, costs, matching, scores));
        [
            make("to", &[places], DType::Bool),
            make("mul", &[own, self.classes], DType::F32),
            make("unsqueeze", &[places, 1], dtype),
            make("index", &[own, 4], DType::F32),
        ]
    }
}

/// `YOLOXBBoxCoder.decode`: centres and sizes, and the four corners of them.
fn decoded(sides: &Tensor) -> Tensor {
    let halves = sides.chunk(2, -1);
    let [place, size] = &halves[..] else {
        return sides.clone();
    };
    let places = sides.constant("priors", &[sides.size(1), 2], sides.dtype());
    let centre = place.mul(&places).pipe(|centre| centre.add(&places));
    let size = size.exp().pipe(|size| size.mul(&places));
    let ends: Vec<Tensor> = [false, true]
        .into_iter()
        .map(|above| {
            let half = size.mul_scalar();
            if above {
                centre.add(&half)
            } else {
                centre.sub(&half)
            }
        })
        .collect();
    joined(&ends, -1, sides)
}
