//! Detectors of MMDetection and detectron2: a backbone, a pyramid, and heads over anchors and over regions. Which anchors and regions
//! are chosen depends on the data: the most that are sampled are, and each picture has as many objects as `objects` says.

mod anchors;
mod named;
mod one_stage;
mod pyramid;
mod regions;
mod trunk;

use self::pyramid::{Top, WIDE};
use self::regions::{box_losses, boxes, mask_loss, masks, pooled, predicted};
use self::trunk::{Norm, Trunk};
use super::Pictures;
use crate::nets::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub use named::named;

/// Whose functions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    MmDetection,
    Detectron2,
    /// Its first release, whose overlaps keep more at once.
    Detectron2First,
}

pub(in crate::nets) const FAMILIES: &[(&str, Build)] = &[
    ("mmdet_rcnn", |s| {
        build(s, Library::MmDetection, Kind::Regions)
    }),
    ("mmdet_retinanet", |s| {
        build(s, Library::MmDetection, Kind::Retina)
    }),
    ("mmdet_fcos", |s| {
        build(s, Library::MmDetection, Kind::Places)
    }),
    ("d2_rcnn", |s| build(s, Library::Detectron2, Kind::Regions)),
    ("d2_rpn", |s| build(s, Library::Detectron2, Kind::Proposals)),
    ("d2_retinanet", |s| {
        build(s, Library::Detectron2, Kind::Retina)
    }),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Proposals alone.
    Proposals,
    /// Proposals, and heads over them.
    Regions,
    Retina,
    /// FCOS: places instead of anchors.
    Places,
}

/// Where regions are pooled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Pyramid,
    /// The third stage; the fourth runs over regions.
    C4,
    /// A dilated fourth stage.
    Dc5,
}

#[derive(Clone, Debug)]
struct Detector {
    library: Library,
    kind: Kind,
    trunk: Trunk,
    source: Source,
    /// Norm of the pyramid and the heads.
    norm: Option<Norm>,
    /// Heads of boxes one after the other.
    cascade: u64,
    with_masks: bool,
    /// Regions of a picture that are sampled.
    regions: u64,
    classes: u64,
    pictures: Pictures,
}

fn build(sizes: &Sizes, library: Library, kind: Kind) -> Result<Box<dyn Net>, ModelError> {
    let library = if sizes.is_set("first_release") {
        Library::Detectron2First
    } else {
        library
    };
    let usual = if library == Library::MmDetection {
        Norm::Running
    } else {
        Norm::Frozen
    };
    let height = sizes.or("img", 800);
    Ok(Box::new(Detector {
        library,
        kind,
        trunk: Trunk::of(sizes, usual)?,
        source: if sizes.is_set("c4") {
            Source::C4
        } else if sizes.is_set("dc5") {
            Source::Dc5
        } else {
            Source::Pyramid
        },
        norm: sizes.is_set("normed_heads").then(|| Norm::of(sizes, usual)),
        cascade: sizes.or("cascade", 1).clamp(1, 100),
        with_masks: sizes.is_set("masks"),
        regions: sizes.or("regions", 512),
        classes: sizes.or("classes", 80),
        pictures: Pictures {
            height,
            width: sizes.or("img_w", height),
            objects: sizes.or("objects", 7),
        },
    }))
}

impl Net for Detector {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        // Masks stay on the host or are outlines.
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, ..] = batch else {
            return Output::empty(cx);
        };
        let losses = match self.kind {
            Kind::Regions | Kind::Proposals => self.two_stages(cx, image),
            Kind::Retina => self.retina(cx, image),
            Kind::Places => self.places(cx, image),
        };
        let mut all = losses.iter();
        let loss = match all.next() {
            Some(first) => all.fold(first.clone(), |sum, loss| sum.add(loss)),
            None => Output::empty(cx).loss,
        };
        Output {
            loss,
            held: Vec::new(),
        }
    }
}

impl Detector {
    /// The maps that proposals come from.
    fn maps(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let stages = if self.source == Source::C4 { 3 } else { 4 };
        let maps = cx.module("backbone", |cx| self.trunk.maps(cx, image, stages));
        match (self.source, &self.trunk) {
            (Source::Pyramid, Trunk::Parallel(_)) => {
                cx.module("neck", |cx| pyramid::hrfpn(cx, &maps, 1))
            }
            (Source::Pyramid, Trunk::Residual(_) | Trunk::Regular(_)) => {
                cx.module("neck", |cx| pyramid::fpn(cx, &maps, Top::Pooled, self.norm))
            }
            (Source::C4 | Source::Dc5, _) => maps.last().into_iter().cloned().collect(),
        }
    }

    fn two_stages(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let maps = self.maps(cx, image);
        // One shape of three on each map of a pyramid, five sizes on a single one.
        let per_place = if self.source == Source::Pyramid {
            3
        } else {
            15
        };
        let mut losses = cx.module("rpn_head", |cx| {
            let outputs: Vec<[Tensor; 2]> = (maps.iter())
                .map(|map| {
                    let form = Conv::stride(1).padded(1);
                    let wide = map.size(1).max(WIDE);
                    let wide = if self.source == Source::Pyramid {
                        WIDE
                    } else {
                        wide
                    };
                    let x = cx.conv2d("rpn_conv", map, wide, 3, form, true).relu_();
                    let point = |name, out| cx.conv2d(name, &x, out, 1, Conv::default(), true);
                    [point("rpn_cls", per_place), point("rpn_reg", 4 * per_place)]
                })
                .collect();
            anchors::losses(cx, self.library, &outputs, per_place, self.pictures.objects)
        });
        if self.kind == Kind::Proposals {
            return losses;
        }
        let pictures = image.size(0);
        let count = pictures.saturating_mul(self.regions);
        let positive = (count / 4).max(1);
        let norm = self.norm.unwrap_or(Norm::Running);
        if self.source == Source::C4 {
            losses.extend(cx.module("roi_head", |cx| {
                self.over_fourth_stage(cx, &maps, image, [count, positive])
            }));
            return losses;
        }
        cx.module("roi_head", |cx| {
            for stage in 0..self.cascade as usize {
                let found = {
                    let regions = pooled(&maps, image, count, 7);
                    let per_class = self.cascade == 1;
                    cx.list_item("bbox_head", stage, |cx| {
                        boxes(cx, &regions, self.classes, per_class, norm)
                    })
                };
                losses.extend(box_losses(&found));
                // detectron2's cascade has one head of masks, over the last boxes.
                let last = stage + 1 == self.cascade as usize;
                if self.with_masks && (self.library == Library::MmDetection || last) {
                    let found = {
                        let regions = pooled(&maps, image, positive, 14);
                        cx.list_item("mask_head", stage, |cx| {
                            masks(cx, &regions, self.classes, norm)
                        })
                    };
                    if self.library == Library::MmDetection {
                        self.mask_targets(cx, image, positive);
                    }
                    losses.push(mask_loss(&found));
                }
            }
        });
        losses
    }

    /// `BitmapMasks.crop_and_resize` of one picture: the masks of its objects, of each region the whole mask of its object, and that once
    /// more as numbers (mmdet/core/mask/structures.py).
    fn mask_targets(&self, cx: &Cx, image: &Tensor, positive: u64) {
        cx.tape.no_grad(|| {
            let whole = |count, dtype| {
                let shape = [count, image.size(2), image.size(3)];
                image.constant("masks", &shape, dtype)
            };
            let own = positive / image.size(0).max(1);
            let masks = whole(self.pictures.objects, DType::U8);
            let chosen = whole(own, DType::U8);
            drop(masks);
            let numbers = whole(own, DType::F32);
            drop((chosen, numbers));
        });
    }

    /// `Res5ROIHeads`: the fourth stage over every region, and a mean; masks of the positive ones.
    fn over_fourth_stage(
        &self,
        cx: &Cx,
        maps: &[Tensor],
        image: &Tensor,
        [count, positive]: [u64; 2],
    ) -> Vec<Tensor> {
        let Trunk::Residual(net) = &self.trunk else {
            return Vec::new();
        };
        let x = pooled(maps, image, count, 14).pipe(|regions| net.stage(cx, regions, 3));
        let means = x.mean(&[2, 3]).flattened_from_one();
        let found = predicted(cx, &means, self.classes, true);
        let mut losses = box_losses(&found);
        drop((means, found));
        if self.with_masks {
            let index = x.constant("nonzero", &[positive], DType::I64);
            let own = x.rows(&index);
            drop(x);
            let masks = cx.module("mask_head", |cx| {
                let twice = Conv {
                    transposed: Some(0),
                    ..Conv::stride(2)
                };
                let y = cx.conv2d("upsample", &own, 256, 2, twice, true).relu_();
                cx.conv2d("conv_logits", &y, self.classes, 1, Conv::default(), true)
            });
            losses.push(mask_loss(&masks));
        }
        losses
    }
}
