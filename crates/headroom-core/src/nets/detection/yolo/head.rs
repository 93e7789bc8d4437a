//! `Detect` (ultralytics/nn/modules/head.py): at every place of the maps a box and a score for each class.

use super::blocks::Unit;
use super::{Generation, Yolo};
use crate::nets::Cx;
use crate::nets::detection::joined;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// What a head predicts: boxes `[B, 4 · bins, places]` and scores `[B, classes, places]`.
pub(super) struct Found {
    pub boxes: Tensor,
    pub scores: Tensor,
    pub masks: Option<Masks>,
}

/// The masks of objects: numbers at each place `[B, 32, places]` by which maps `[B, 32, height, width]` are weighted.
pub(super) struct Masks {
    pub weights: Tensor,
    pub maps: Tensor,
}

/// `nm`: the maps that masks are made of.
const MASK_MAPS: u64 = 32;

/// The names of a head's lists of modules for boxes, classes and masks.
type Names = [&'static str; 3];

impl Yolo {
    pub(super) fn heads(&self, cx: &Cx, maps: &[Tensor]) -> Vec<Found> {
        let mut heads = vec![self.head(cx, maps, ["cv2", "cv3", "cv4"])];
        if self.generation.has_second_head() {
            // Its gradient ends at the maps.
            let apart: Vec<Tensor> = maps.iter().map(Tensor::detach).collect();
            heads.push(self.head(cx, &apart, ["one2one_cv2", "one2one_cv3", "one2one_cv4"]));
        }
        if self.generation.bins() > 1 {
            // `DFL`: the numbers of the bins, frozen, which only inference runs.
            cx.module("dfl", |cx| {
                cx.module("conv", |cx| {
                    let shape = [1, self.generation.bins(), 1, 1];
                    cx.param_as("weight", shape, cx.env.weights, |_| false)
                })
            });
        }
        heads
    }

    fn head(&self, cx: &Cx, maps: &[Tensor], [of_boxes, of_classes, of_masks]: Names) -> Found {
        let finest = maps.first().map_or(0, |map| map.size(1));
        let sides = 4 * self.generation.bins();
        let box_width = (finest / 4).max(sides).max(16);
        let class_width = finest.max(self.classes.min(100));
        let flat = |name, out: u64, body: &dyn Fn(&Cx, &Tensor) -> Tensor| {
            let each: Vec<Tensor> = maps
                .iter()
                .enumerate()
                .map(|(i, map)| {
                    let found = cx.module(name, |cx| cx.module(index_name(i), |cx| body(cx, map)));
                    let places = found.size(2).saturating_mul(found.size(3));
                    found.view(&[found.size(0), out, places])
                })
                .collect();
            match each.first() {
                Some(first) => joined(&each, -1, first),
                None => cx.tape.empty("cat", [0, out, 0], cx.env.weights),
            }
        };
        let last = |cx: &Cx, x: &Tensor, out| cx.conv2d("2", x, out, 1, Conv::stride(1), true);
        let boxes = flat(of_boxes, sides, &|cx, map| {
            let x = Unit::new(box_width, 3)
                .run(cx, "0", map)
                .pipe(|x| Unit::new(box_width, 3).run(cx, "1", x));
            last(cx, &x, sides)
        });
        let scores = flat(of_classes, self.classes, &|cx, map| {
            let x = if self.generation == Generation::Eight {
                Unit::new(class_width, 3)
                    .run(cx, "0", map)
                    .pipe(|x| Unit::new(class_width, 3).run(cx, "1", x))
            } else {
                apart(cx, "0", map, class_width).pipe(|x| apart(cx, "1", x, class_width))
            };
            last(cx, &x, self.classes)
        });
        let masks = self.has_masks.then(|| {
            let width = (finest / 4).max(MASK_MAPS);
            let weights = flat(of_masks, MASK_MAPS, &|cx, map| {
                let x = Unit::new(width, 3)
                    .run(cx, "0", map)
                    .pipe(|x| Unit::new(width, 3).run(cx, "1", x));
                last(cx, &x, MASK_MAPS)
            });
            let maps = match maps.first() {
                Some(map) => cx.module("proto", |cx| self.prototypes(cx, map)),
                None => weights.clone(),
            };
            Masks { weights, maps }
        });
        Found {
            boxes,
            scores,
            masks,
        }
    }

    /// `Proto` of ultralytics/nn/modules/block.py: maps of twice the finest one's size.
    fn prototypes(&self, cx: &Cx, map: &Tensor) -> Tensor {
        let width = self.scale.channels(256);
        let doubling = Conv {
            transposed: Some(0),
            ..Conv::stride(2)
        };
        Unit::new(width, 3)
            .run(cx, "cv1", map)
            .pipe(|x| cx.conv2d("upsample", x, width, 2, doubling, true))
            .pipe(|x| Unit::new(width, 3).run(cx, "cv2", x))
            .pipe(|x| Unit::new(MASK_MAPS, 1).run(cx, "cv3", x))
    }
}

/// `DWConv` and a convolution of one pixel.
fn apart(cx: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
    cx.module(name, |cx| {
        let channels = x.size(1);
        Unit::new(channels, 3)
            .grouped(channels)
            .run(cx, "0", x)
            .pipe(|x| Unit::new(out, 1).run(cx, "1", x))
    })
}
