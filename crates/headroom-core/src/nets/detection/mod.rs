//! Detectors of transformers that predict a set of boxes: YOLOS and DETR. Their pictures have as many objects each as `objects` says.

mod backbone;
mod detr;
mod loss;
mod yolos;

use super::net::Build;
use super::{Cx, Sizes};
use crate::tape::{DType, Tensor};

pub(super) const FAMILIES: &[(&str, Build)] = &[("detr", detr::build), ("yolos", yolos::build)];

/// Pictures of a height and a width, and the number of objects in each.
#[derive(Clone, Copy, Debug)]
struct Pictures {
    height: u64,
    width: u64,
    objects: u64,
}

impl Pictures {
    fn of(sizes: &Sizes, usual: u64) -> Self {
        let height = sizes.or("img", usual);
        Self {
            height,
            width: sizes.or("img_w", height),
            objects: sizes.or("objects", 7),
        }
    }

    /// Pixels, and a class and a box for each object.
    fn batch(&self, cx: &Cx, count: u64) -> Vec<Tensor> {
        let pixels = [count, 3, self.height, self.width];
        let objects = count.saturating_mul(self.objects);
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            cx.tape.empty("class_labels", [objects], DType::I64),
            cx.tape.empty("boxes", [objects, 4], cx.env.weights),
        ]
    }
}

/// `…MLPPredictionHead` of three layers.
fn prediction_head(cx: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
    cx.module(name, |cx| {
        let layer = |i: usize, x: &Tensor, width: u64| {
            cx.module("layers", |cx| {
                cx.linear(super::vision::index_name(i), x, width, true)
            })
        };
        let mut y = layer(0, x, x.size(-1)).relu();
        y = layer(1, &y, x.size(-1)).relu();
        layer(2, &y, out)
    })
}
