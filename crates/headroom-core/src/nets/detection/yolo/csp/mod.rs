//! YOLOv5 as Ultralytics' repository of that name trains it and as MMYOLO does, and MMYOLO's YOLOX: a backbone and a pyramid of blocks of
//! three convolutions (`trunk.rs`), with anchors (`anchored.rs`) or without (`free.rs`).

mod anchored;
mod free;
mod masks;
mod named;
mod trunk;

use super::super::Pictures;
use super::layers::{Layers, Scale};
use super::{Generation, Yolo, loss};
use crate::nets::net::Build;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub use named::named;

/// Whose functions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// github.com/ultralytics/yolov5.
    Five,
    /// The `ultralytics` package's, with the head and the loss of v8.
    FiveU,
    /// `YOLOv5Head` of MMYOLO.
    MmFive,
    /// `YOLOXHead` of MMYOLO.
    X,
}

#[derive(Clone, Copy, Debug)]
struct Csp {
    kind: Kind,
    scale: Scale,
    /// Whether there is a fourth, coarser map (P6).
    has_fourth_map: bool,
    /// Whether each object has a mask besides its box.
    has_masks: bool,
    classes: u64,
    /// The share of all places that lie in an object's box, in percent.
    covered_percent: u64,
    pictures: Pictures,
}

// Like the other networks' builders, so that one table can list them all.
pub(in super::super) const FAMILIES: &[(&str, Build)] = &[
    ("mmyolo_v5", |sizes| build(sizes, Kind::MmFive, false)),
    ("mmyolo_x", |sizes| build(sizes, Kind::X, false)),
    ("yolov5", |sizes| build(sizes, Kind::Five, false)),
    ("yolov5_seg", |sizes| build(sizes, Kind::Five, true)),
    ("yolov5u", |sizes| build(sizes, Kind::FiveU, false)),
];

fn build(sizes: &Sizes, kind: Kind, has_masks: bool) -> Result<Box<dyn Net>, ModelError> {
    let has_fourth_map = sizes.is_set("four_maps");
    let mut pictures = Pictures::of(sizes, if has_fourth_map { 1280 } else { 640 });
    // `check_img_size`: sides are rounded up to the places of the coarsest map.
    let stride = if has_fourth_map { 64 } else { 32 };
    for side in [&mut pictures.height, &mut pictures.width] {
        *side = side.div_ceil(stride).max(1).saturating_mul(stride);
    }
    Ok(Box::new(Csp {
        kind,
        scale: Scale {
            depth_percent: sizes.need("depth_percent")?,
            width_percent: sizes.need("width_percent")?,
            most: 1024,
            deep: false,
        },
        has_fourth_map,
        has_masks,
        classes: sizes.or("classes", 80),
        covered_percent: sizes.or("covered_percent", 10).min(100),
        pictures,
    }))
}

impl Csp {
    /// What v8 makes of the maps.
    fn eighth(&self) -> Yolo {
        Yolo {
            generation: Generation::Eight,
            scale: self.scale,
            classes: self.classes,
            covered_percent: self.covered_percent,
            has_masks: false,
            pictures: self.pictures,
        }
    }

    fn as_eighth(&self, cx: &Cx, image: &Tensor) -> Option<Tensor> {
        let net = self.eighth();
        let (maps, heads) = cx.module("model", |cx| {
            let mut layers = Layers::new(cx);
            let maps = self.maps(&mut layers, image);
            let heads = layers.next(|cx| net.heads(cx, &maps));
            (maps, heads)
        });
        let loss = cx.module("loss", |cx| {
            let found = heads.first()?;
            Some(net.loss(cx, found, None, loss::CANDIDATES))
        });
        drop((maps, heads));
        loss
    }

    fn objects_in_all(&self, pictures: u64) -> u64 {
        pictures.saturating_mul(self.pictures.objects)
    }
}

impl Net for Csp {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        if self.kind == Kind::FiveU {
            return self.eighth().batch(cx, data);
        }
        let Pictures { height, width, .. } = self.pictures;
        let pixels = [data.micro_batch, 3, height, width];
        let rows = [self.objects_in_all(data.micro_batch), 6];
        let mut batch = vec![
            cx.tape.empty("img", pixels, cx.env.weights),
            cx.tape.empty("targets", rows, DType::F32),
        ];
        if self.has_masks {
            // One of each picture, with the number of the object at each place (`overlap`).
            let side = |pixels: u64| pixels / super::masks::RATIO;
            let shape = [data.micro_batch, side(height), side(width)];
            batch.push(cx.tape.empty("masks", shape, DType::F32));
        }
        batch
    }

    fn loads_batches_in_turn(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, targets, ..] = batch else {
            return Output::empty(cx);
        };
        let loss = match self.kind {
            Kind::Five | Kind::MmFive => return self.anchored(cx, image, targets),
            Kind::FiveU => self.as_eighth(cx, image),
            Kind::X => Some(self.free(cx, image)),
        };
        loss.map_or_else(
            || Output::empty(cx),
            |loss| Output {
                loss,
                held: Vec::new(),
            },
        )
    }
}
