//! Detectors of transformers that predict a set of boxes: YOLOS, DETR and RT-DETR; OWL-ViT, which finds what texts name;
//! Faster R-CNN, which looks at regions; and Ultralytics' YOLO, which predicts a box at every place. Their pictures have as many objects each as `objects` says.

mod backbone;
mod deformable;
mod deformable_detr;
mod detr;
mod faster_rcnn;
mod grounding_dino;
mod loss;
mod mask2former;
mod owl;
mod rf_detr;
mod rt_detr;
mod yolo;
mod yolos;
mod zoo;

use super::net::Build;
use super::{Cx, Sizes};
use crate::tape::{DType, Tensor};
pub use yolo::named as yolo_named;
pub use zoo::named;

/// Detectors of MMDetection and detectron2.
pub(super) use zoo::FAMILIES as ZOO;

/// Ultralytics' detectors, segmenters and classifiers.
pub(super) const YOLO: &[(&str, Build)] = yolo::FAMILIES;

/// YOLOv5 and MMYOLO's.
pub(super) const CSP: &[(&str, Build)] = yolo::CSP;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("deformable_detr", deformable_detr::build),
    ("detr", detr::build),
    ("d_fine", rt_detr::d_fine::build),
    ("faster_rcnn", faster_rcnn::build),
    ("grounding_dino", grounding_dino::build),
    ("mask2former", mask2former::build),
    ("owlv2", owl::second),
    ("owlvit", owl::first),
    ("rf_detr", rf_detr::build),
    ("rt_detr", rt_detr::first),
    ("rt_detr_v2", rt_detr::second),
    ("yolos", yolos::build),
];

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
    let width = x.size(-1);
    cx.module(name, |cx| perceptron(cx, x, &[width, width, out]))
}

/// The same of layers of these widths.
fn perceptron(cx: &Cx, x: &Tensor, widths: &[u64]) -> Tensor {
    perceptron_of(cx, x, widths, Tensor::relu)
}

/// The same with another activation.
fn perceptron_of(cx: &Cx, x: &Tensor, widths: &[u64], activation: fn(&Tensor) -> Tensor) -> Tensor {
    let layers = widths.iter().enumerate();
    layers.fold(x.clone(), |x, (i, width)| {
        let y = cx.module("layers", |cx| {
            cx.linear(super::vision::index_name(i), &x, *width, true)
        });
        if i + 1 < widths.len() {
            y.pipe(activation)
        } else {
            y
        }
    })
}

/// `torch.cat` of a list.
fn joined(all: &[Tensor], dim: isize, otherwise: &Tensor) -> Tensor {
    match all.split_first() {
        Some((first, rest)) => Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), dim),
        None => otherwise.clone(),
    }
}
