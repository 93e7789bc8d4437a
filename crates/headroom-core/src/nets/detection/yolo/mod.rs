//! YOLO of Ultralytics: v8, 11 and 26 in any of their scales. A backbone and a pyramid of convolutions (`layers.rs`), a head that
//! predicts a box and classes at every place of three maps (`head.rs`), and the loss, which assigns places to objects (`loss.rs`).

mod assigner;
mod attention;
mod blocks;
mod classify;
mod csp;
mod head;
mod layers;
mod loss;
mod masks;
mod overlap;

use super::Pictures;
use crate::nets::net::Build;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;
use layers::Scale;

pub(super) use csp::FAMILIES as CSP;
pub use csp::named;

/// A generation of the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    Eight,
    Eleven,
    TwentySix,
}

#[derive(Clone, Copy, Debug)]
struct Yolo {
    generation: Generation,
    scale: Scale,
    classes: u64,
    /// The share of all places that lie in an object's box, in percent: those are compared with it.
    covered_percent: u64,
    /// Whether each object has a mask besides its box.
    has_masks: bool,
    pictures: Pictures,
}

// Like the other networks' builders, so that one table can list them all.
pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("yolo11", |sizes| boxed(sizes, Generation::Eleven, false)),
    ("yolo11_cls", |sizes| {
        classify::build(sizes, Generation::Eleven)
    }),
    ("yolo11_seg", |sizes| boxed(sizes, Generation::Eleven, true)),
    ("yolo26", |sizes| boxed(sizes, Generation::TwentySix, false)),
    ("yolov8", |sizes| boxed(sizes, Generation::Eight, false)),
    ("yolov8_cls", |sizes| {
        classify::build(sizes, Generation::Eight)
    }),
    ("yolov8_seg", |sizes| boxed(sizes, Generation::Eight, true)),
];

fn boxed(
    sizes: &Sizes,
    generation: Generation,
    has_masks: bool,
) -> Result<Box<dyn Net>, ModelError> {
    let network = build(sizes, generation, 640)?;
    Ok(Box::new(Yolo {
        has_masks,
        ..network
    }))
}

fn build(sizes: &Sizes, generation: Generation, usual: u64) -> Result<Yolo, ModelError> {
    let mut pictures = Pictures::of(sizes, usual);
    // `check_imgsz`: sides are rounded up to the places of the coarsest map.
    for side in [&mut pictures.height, &mut pictures.width] {
        *side = side.div_ceil(STRIDE).max(1).saturating_mul(STRIDE);
    }
    Ok(Yolo {
        generation,
        scale: Scale {
            depth_percent: sizes.need("depth_percent")?,
            width_percent: sizes.need("width_percent")?,
            most: sizes.or("max_channels", 1024),
            // The scales from m on have C3k blocks in every C3k2 (`parse_model`).
            deep: sizes.is_set("deep_blocks"),
        },
        classes: sizes.or("classes", 80),
        covered_percent: sizes.or("covered_percent", 10).min(100),
        has_masks: false,
        pictures,
    })
}

/// Pixels along a place's side in the coarsest map.
const STRIDE: u64 = 32;

impl Generation {
    /// `reg_max`: the numbers of which each side of a box is the expectation, or one where the side itself is predicted.
    const fn bins(self) -> u64 {
        match self {
            Self::Eight | Self::Eleven => 16,
            Self::TwentySix => 1,
        }
    }

    /// Whether a second head is trained that finds each object once.
    const fn has_second_head(self) -> bool {
        matches!(self, Self::TwentySix)
    }
}

impl Net for Yolo {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let Pictures {
            height,
            width,
            objects,
        } = self.pictures;
        let count = data.micro_batch.saturating_mul(objects);
        let floats = |name, shape: &[u64]| cx.tape.empty(name, shape, DType::F32);
        let pixels = [data.micro_batch, 3, height, width];
        let mut batch = vec![
            cx.tape.empty("img", pixels, cx.env.weights),
            floats("batch_idx", &[count]),
            floats("cls", &[count, 1]),
            floats("bboxes", &[count, 4]),
        ];
        if self.has_masks {
            // One of each picture, with the number of the object at each place (`overlap_mask`).
            let shape = [
                data.micro_batch,
                height / masks::RATIO,
                width / masks::RATIO,
            ];
            batch.push(cx.tape.empty("masks", shape, DType::U8));
        }
        batch
    }

    fn loads_batches_in_turn(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, ..] = batch else {
            return Output::empty(cx);
        };
        let (maps, heads) = cx.module("model", |cx| self.found(cx, image));
        let loss = cx.module("loss", |cx| {
            let each = heads.iter().enumerate();
            // `E2ELoss`: one after the other. Many places may find an object for the first head, and one for the second.
            let all = each.map(|(i, found)| {
                let kept = if i == 0 { loss::CANDIDATES } else { 1 };
                self.loss(cx, found, batch.get(4), kept)
            });
            all.reduce(|sum, other| sum.mul_scalar().add(&other.mul_scalar()))
        });
        drop((maps, heads));
        loss.map_or_else(
            || Output::empty(cx),
            |loss| Output {
                loss,
                held: Vec::new(),
            },
        )
    }
}

/// `torch.cat` under autocast, which takes all in the widest type of them (the `promote` list of autocast_mode.h).
fn joined(all: &[Tensor], dim: isize, otherwise: &Tensor) -> Tensor {
    let widest = all.iter().map(Tensor::dtype).reduce(DType::promote);
    let cast: Vec<Tensor> = all
        .iter()
        .map(|part| widest.map_or_else(|| part.clone(), |dtype| part.to(dtype)))
        .collect();
    super::joined(&cast, dim, otherwise)
}
