//! RT-DETR and its second version: features of a ResNet through a hybrid encoder of convolutions and attention on the coarsest map;
//! a decoder whose queries are the best places, and denoising queries made of the objects
//! (transformers/models/{rt_detr,rt_detr_v2}/modeling_*.py). The objects of all pictures are one list.

mod backbone;
pub(super) mod d_fine;
mod decoder;
mod hybrid;
mod loss;

use backbone::Backbone;
use decoder::{Decoded, Decoder};
use hybrid::Hybrid;
pub(super) use loss::match_boxes;

use super::deformable::Maps;
use super::{Pictures, joined, perceptron, perceptron_of};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Features of a picture, finest map first.
trait Features {
    fn features(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor>;
}

/// An encoder of maps of one width.
trait Encoder {
    fn width(&self) -> u64;
    fn forward(&self, cx: &Cx, maps: &[Tensor]) -> Vec<Tensor>;
}

/// A decoder of queries: what they are, and where they look at first.
trait Queries {
    /// `learn_initial_query`.
    fn learned(&self) -> bool;
    fn forward(
        &self,
        cx: &Cx,
        queries: [&Tensor; 2],
        maps: &Maps,
        mask: Option<&Tensor>,
        classes: u64,
    ) -> Decoded;
}

struct RtDetr {
    parts: Parts,
    hidden: u64,
    queries: u64,
    /// `num_denoising`: about so many queries are made of the objects.
    denoising: u64,
    classes: u64,
    pictures: Pictures,
}

/// What the model hands to its loss.
struct Found {
    /// Classes and boxes of each decoder layer, `[B, layers, queries, …]`.
    logits: Tensor,
    boxes: Tensor,
    /// Those of the encoder's best places.
    first: [Tensor; 2],
    /// Distributions of the corners of each layer, and the boxes that they are of (D-FINE).
    corners: Option<[Tensor; 2]>,
    /// What the output object holds besides.
    held: Vec<Tensor>,
}

pub(super) fn first(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, false)
}

pub(super) fn second(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, true)
}

fn build(sizes: &Sizes, second: bool) -> Result<Box<dyn Net>, ModelError> {
    let parts = Parts {
        backbone: Box::new(Backbone::new(sizes)?),
        hybrid: Box::new(Hybrid::new(sizes, None)?),
        decoder: Box::new(Decoder::new(sizes, second)?),
        projects: true,
    };
    of_parts(sizes, parts)
}

/// What tells its descendants apart.
struct Parts {
    backbone: Box<dyn Features>,
    hybrid: Box<dyn Encoder>,
    decoder: Box<dyn Queries>,
    /// Maps of the encoder are projected, whatever their width.
    projects: bool,
}

fn of_parts(sizes: &Sizes, parts: Parts) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let pictures = Pictures::of(sizes, 640);
    for (name, value) in [("img", pictures.height), ("img_w", pictures.width)] {
        // Maps are halved five times and doubled again.
        if value == 0 || !value.is_multiple_of(STRIDE) {
            let of = STRIDE;
            return Err(ModelError::NoMultiple { name, value, of });
        }
    }
    Ok(Box::new(RtDetr {
        parts,
        hidden,
        queries: sizes.or("queries", 300),
        denoising: sizes.or("denoising", 100),
        classes: sizes.or("classes", 80),
        pictures,
    }))
}

/// Pixels along a place's side in the coarsest map.
const STRIDE: u64 = 32;

impl Net for RtDetr {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels, boxes] = batch else {
            return Output::empty(cx);
        };
        let found = cx.module("model", |cx| self.model(cx, image, [labels, boxes]));
        let noisy = self.noisy_queries(boxes);
        let loss = cx.module("loss", |cx| {
            loss::loss(cx, &found, boxes, noisy, self.groups())
        });
        let mut held = found.held;
        held.extend([found.logits, found.boxes]);
        held.extend(found.first);
        held.extend(found.corners.into_iter().flatten());
        Output { loss, held }
    }
}

impl RtDetr {
    /// `num_groups_denoising_queries`.
    fn groups(&self) -> u64 {
        (self.denoising / self.pictures.objects.max(1)).max(1)
    }

    /// Denoising queries of a picture: an altered and a wrong one of each object, in each group.
    fn noisy_queries(&self, boxes: &Tensor) -> u64 {
        if self.denoising == 0 || boxes.size(0) == 0 {
            return 0;
        }
        2_u64
            .saturating_mul(self.pictures.objects)
            .saturating_mul(self.groups())
    }

    fn model(&self, cx: &Cx, image: &Tensor, [labels, boxes]: [&Tensor; 2]) -> Found {
        let (n, hidden) = (image.size(0), self.hidden);
        let pixels = [n, image.size(2), image.size(3)];
        let mask = image.constant("ones", &pixels, DType::F32);
        let features = cx.module("backbone", |cx| {
            cx.module("model", |cx| self.parts.backbone.features(cx, image))
        });
        let masks: Vec<Tensor> = features
            .iter()
            .map(|map| image.constant("to", &[n, map.size(2), map.size(3)], DType::Bool))
            .collect();
        let width = self.parts.hybrid.width();
        let projected: Vec<Tensor> = features
            .iter()
            .enumerate()
            .map(|(i, map)| projection(cx, "encoder_input_proj", i, map, width))
            .collect();
        let maps = cx.module("encoder", |cx| self.parts.hybrid.forward(cx, &projected));
        let sources: Vec<Tensor> = maps
            .iter()
            .enumerate()
            .map(|(i, map)| {
                if self.parts.projects || map.size(1) != hidden {
                    projection(cx, "decoder_input_proj", i, map, hidden)
                } else {
                    map.clone()
                }
            })
            .collect();
        let grids: Vec<[u64; 2]> = sources
            .iter()
            .map(|map| [map.size(2), map.size(3)])
            .collect();
        let flat: Vec<Tensor> = sources
            .iter()
            .map(|map| {
                let count = map.size(2).saturating_mul(map.size(3));
                map.reshape(&[n, hidden, count]).transpose(1, 2)
            })
            .collect();
        let memory = joined(&flat, 1, image);
        let noisy = self.noisy(cx, n, [labels, boxes]);
        // Anchors and where they are valid are made once for a size of pictures.
        let places = memory.size(1);
        let anchors = cx.buffer("anchors", [1, places, 4], memory.dtype());
        let valid = cx.buffer("valid_mask", [1, places, 1], DType::Bool);
        let kept = {
            let valid = valid.constant("to", valid.shape(), memory.dtype());
            valid.pipe(|valid| memory.mul(valid))
        };
        let output = cx.module("enc_output", |cx| {
            let x = cx.linear("0", &kept, hidden, true);
            cx.layer_norm("1", &x)
        });
        let scores = cx.linear("enc_score_head", &output, self.classes, true);
        let coordinates = {
            let found = cx.module("enc_bbox_head", |cx| {
                perceptron(cx, &output, &[hidden, hidden, 4])
            });
            found.add(&anchors)
        };
        let best = {
            let highest = scores.max_values();
            highest.constant("topk", &[n, self.queries], DType::I64)
        };
        let at = |x: &Tensor| {
            let index = best.constant("repeat", &[n, self.queries, x.size(-1)], DType::I64);
            x.gathered(&index)
        };
        let mut reference = at(&coordinates);
        let first_boxes = reference.sigmoid();
        if let Some(noisy) = &noisy {
            reference = Tensor::cat(&noisy.boxes, &[&reference], 1);
        }
        let first_logits = at(&scores);
        let mut target = if self.parts.decoder.learned() {
            let table = cx.module("weight_embedding", |cx| {
                cx.param("weight", [self.queries, hidden]).tensor()
            });
            table.unsqueeze(0).tiled(n)
        } else {
            at(&output).detach()
        };
        if let Some(noisy) = &noisy {
            target = Tensor::cat(&noisy.classes, &[&target], 1);
        }
        let reference = reference.detach();
        let attends = noisy.as_ref().map(|noisy| &noisy.mask);
        let maps_of = Maps {
            features: memory,
            grids,
            mask: None,
        };
        let decoded = cx.module("decoder", |cx| {
            let queries = [&target, &reference];
            self.parts
                .decoder
                .forward(cx, queries, &maps_of, attends, self.classes)
        });
        let mut held = decoded.held;
        held.extend(maps);
        held.extend([reference, scores, coordinates]);
        drop((
            features, masks, mask, projected, sources, flat, kept, output,
        ));
        Found {
            logits: decoded.logits,
            boxes: decoded.boxes,
            first: [first_logits, first_boxes],
            corners: decoded.corners,
            held,
        }
    }

    /// `get_contrastive_denoising_training_group`: what is made of the labels and kept.
    fn noisy(&self, cx: &Cx, n: u64, [labels, boxes]: [&Tensor; 2]) -> Option<Noisy> {
        let embed = |ids: &Tensor| {
            cx.embedding(
                "denoising_class_embed",
                ids,
                self.classes.saturating_add(1),
                self.hidden,
            )
        };
        let made = self.noisy_queries(boxes);
        if made == 0 {
            return None;
        }
        let ids = labels.constant("where", &[n, made], DType::I32);
        let total = made.saturating_add(self.queries);
        let around = boxes.constant("log", &[n, made, 4], DType::F32);
        Some(Noisy {
            classes: embed(&ids),
            boxes: around,
            mask: boxes.constant("full", &[1, 1, total, total], DType::F32),
        })
    }
}

/// Denoising queries, and which of all queries see each other.
struct Noisy {
    classes: Tensor,
    boxes: Tensor,
    mask: Tensor,
}

/// A convolution of one pixel and its batch norm, item `i` of a list.
fn projection(cx: &Cx, list: &'static str, i: usize, map: &Tensor, width: u64) -> Tensor {
    cx.module(list, |cx| {
        cx.module(index_name(i), |cx| {
            let x = cx.conv2d("0", map, width, 1, Conv::stride(1), false);
            cx.batch_norm("1", &x)
        })
    })
}
