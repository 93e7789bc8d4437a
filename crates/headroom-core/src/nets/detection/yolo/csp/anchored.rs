//! Predictions by anchors and their loss (`Detect` of models/yolo.py and `ComputeLoss` of utils/loss.py; mmyolo/models/dense_heads/
//! yolov5_head.py). How many places an object matches depends on the boxes: each is taken to match every anchor, at its own place and
//! two beside it, which is the most.

use super::super::layers::Layers;
use super::super::overlap;
use super::masks;
use super::{Csp, Kind};
use crate::nets::vision::index_name;
use crate::nets::{Cx, Output};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Anchors at a place.
const ANCHORS: u64 = 3;
/// Places of a map that an object can match: its own, and the two nearest beside it.
const PLACES: u64 = 3;

impl Csp {
    pub(super) fn anchored(&self, cx: &Cx, image: &Tensor, targets: &Tensor) -> Output {
        let (maps, outputs, prototypes) = cx.module("model", |cx| {
            let mut layers = Layers::new(cx);
            let maps = self.maps(&mut layers, image);
            let (outputs, prototypes) = layers.next(|cx| self.head(cx, &maps));
            (maps, outputs, prototypes)
        });
        if self.kind == Kind::Five && !cx.tape.declaring() {
            // train.py binds what the model gives to a name, until the next batch gives anew.
            let named = outputs.iter().chain(&prototypes).cloned().collect();
            drop(cx.env.shared.loop_variables.replace(named));
        }
        let mut sum: Option<Tensor> = None;
        for output in &outputs {
            if cx.tape.is_over_budget() {
                break;
            }
            for loss in self.losses(cx, output, targets, prototypes.as_ref()) {
                sum = Some(match sum {
                    Some(sum) => sum.add(&loss),
                    None => loss,
                });
            }
        }
        drop((maps, outputs, prototypes));
        sum.map_or_else(
            || Output::empty(cx),
            |loss| Output {
                loss,
                held: Vec::new(),
            },
        )
    }

    /// Numbers that an anchor predicts: a box, whether there is an object, its class and its mask.
    const fn width(&self) -> u64 {
        let masks = if self.has_masks { masks::MAPS } else { 0 };
        5 + self.classes + masks
    }

    /// `[B, anchors, height, width, numbers]` of each map in Ultralytics' order, `[B, anchors, numbers, height, width]` in MMYOLO's.
    fn head(&self, cx: &Cx, maps: &[Tensor]) -> (Vec<Tensor>, Option<Tensor>) {
        let prototypes = maps.first().filter(|_| self.has_masks).map(|map| {
            cx.module("proto", |cx| {
                masks::prototypes(cx, map, self.scale.channels(masks::WIDTH))
            })
        });
        let width = self.width();
        let each = maps.iter().enumerate().map(|(i, map)| {
            let y = cx.module("m", |cx| {
                let out = ANCHORS.saturating_mul(width);
                cx.conv2d(index_name(i), map, out, 1, Conv::stride(1), true)
            });
            let y = y.view(&[y.size(0), ANCHORS, width, y.size(2), y.size(3)]);
            if self.kind == Kind::MmFive {
                y
            } else {
                y.permute(&[0, 1, 3, 4, 2]).contiguous()
            }
        });
        (each.collect(), prototypes)
    }

    /// The losses of one map: of boxes and classes where objects match, and whether there is one everywhere.
    fn losses(
        &self,
        cx: &Cx,
        output: &Tensor,
        targets: &Tensor,
        prototypes: Option<&Tensor>,
    ) -> Vec<Tensor> {
        let [batch, objects] = [output.size(0), targets.size(0)];
        let count = objects.saturating_mul(ANCHORS).saturating_mul(PLACES);
        let make = |op, shape: &[u64], dtype| output.constant(op, shape, dtype);
        // Kept from `build_targets` on: picture, anchor and place of each match, its box and its class.
        let indices = [
            make("long", &[count], DType::I64),
            make("long", &[count, 3], DType::I64),
        ];
        let held = [
            make("cat", &[count, 4], DType::F32),
            make("index", &[count, 2], DType::F32),
            make("long", &[count], DType::I64),
        ];
        let [boxes, ..] = &held;
        let parts = Parts::of(self, output, &indices);
        let target = make("zeros", parts.objectness.shape(), output.dtype());
        let (by_box, overlaps) = {
            let shares = parts.boxes.sigmoid();
            let halves = shares.chunk(2, -1);
            let [place, size] = &halves[..] else {
                return Vec::new();
            };
            let place = place.mul_scalar().pipe(Tensor::add_scalar);
            let size = size.mul_scalar().pipe(Tensor::pow).pipe(Tensor::mul_scalar);
            let found = Tensor::cat(&place, &[&size], 1);
            drop((shares, halves, place, size));
            let overlaps = overlap::complete(&cx.tape, &found, boxes);
            let rest = overlaps.neg().pipe(Tensor::add_scalar);
            (rest.mean_all().pipe(Tensor::mul_scalar), overlaps)
        };
        let mut losses = vec![by_box];
        drop(cx.tape.no_grad(|| overlaps.detach().clamp()));
        if self.classes > 1 {
            let wanted = make("full_like", parts.classes.shape(), parts.classes.dtype());
            losses.push(
                parts
                    .classes
                    .bce_with_logits(&wanted)
                    .pipe(Tensor::mul_scalar),
            );
        }
        if let (Some(prototypes), Some(weights)) = (prototypes, &parts.masks) {
            losses.extend(masks::losses(cx, weights, prototypes, count / batch.max(1)));
        }
        losses.push(
            parts
                .objectness
                .bce_with_logits(&target)
                .pipe(Tensor::mul_scalar),
        );
        drop((target, held, indices, overlaps));
        losses
    }
}

/// What one map predicts.
struct Parts {
    /// `[matches, 4]`
    boxes: Tensor,
    /// `[matches, classes]`
    classes: Tensor,
    /// `[matches, maps]`
    masks: Option<Tensor>,
    /// Whether there is an object, at every place and anchor.
    objectness: Tensor,
}

impl Parts {
    fn of(net: &Csp, output: &Tensor, [places, others]: &[Tensor; 2]) -> Self {
        // Four indices at once: no part is copied into another order, and the gradient is put into zeros of its shape.
        let matched = |x: &Tensor| x.picked(places, others);
        if net.kind == Kind::MmFive {
            // `forward_single`: parts of the whole map, each a copy.
            let part = |width: u64| output.narrow(2, width).contiguous();
            let (classes, boxes, objectness) = (part(net.classes), part(4), part(1));
            let last = |x: &Tensor| x.permute(&[0, 1, 3, 4, 2]);
            return Self {
                boxes: matched(&last(&boxes)),
                classes: matched(&last(&classes)),
                masks: None,
                objectness,
            };
        }
        let rows = matched(output);
        let masks = net.has_masks.then_some(masks::MAPS);
        let mut sizes = vec![4, 1, net.classes];
        sizes.extend(masks);
        let mut parts = rows.split(&sizes, 1).into_iter();
        let mut next = || parts.next().unwrap_or_else(|| rows.clone());
        let (boxes, _, classes) = (next(), next(), next());
        Self {
            boxes,
            classes,
            masks: masks.map(|_| next()),
            objectness: output.select(-1),
        }
    }
}
