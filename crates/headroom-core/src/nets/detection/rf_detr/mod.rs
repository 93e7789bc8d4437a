//! RF-DETR: DINOv2 over windows, one map of several of its layers, and a decoder whose queries are there in groups while it trains
//! (transformers/models/rf_detr/modeling_rf_detr.py). The objects of all pictures are one list.

mod backbone;
mod decoder;
mod loss;
mod proposals;

use backbone::Backbone;
use decoder::Decoder;
use proposals::Proposals;

use super::{Pictures, perceptron};
use crate::nets::error::at_most;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct RfDetr {
    backbone: Backbone,
    decoder: Decoder,
    proposals: Proposals,
    hidden: u64,
    classes: u64,
    pictures: Pictures,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let classes = sizes.or("classes", 91);
    let pictures = Pictures::of(sizes, 560);
    let backbone = Backbone::new(sizes)?;
    for (name, value) in [("img", pictures.height), ("img_w", pictures.width)] {
        let of = backbone.step();
        if value == 0 || !value.is_multiple_of(of) {
            return Err(ModelError::NoMultiple { name, value, of });
        }
    }
    at_most("query_groups", sizes.or("query_groups", 13), 1000)?;
    Ok(Box::new(RfDetr {
        backbone,
        decoder: Decoder::new(sizes)?,
        proposals: Proposals {
            hidden,
            classes,
            groups: sizes.or("query_groups", 13).max(1),
            queries: sizes.or("queries", 300),
        },
        hidden,
        classes,
        pictures,
    }))
}

/// `refine_bboxes`: boxes moved by so much of their sides, and scaled.
fn refined(boxes: &Tensor, deltas: &Tensor) -> Tensor {
    let (middle, sides) = (boxes.narrow(-1, 2), boxes.narrow(-1, 2));
    let centres = {
        let moved = deltas.narrow(-1, 2).mul(&sides);
        moved.add(&middle)
    };
    let scaled = {
        let factor = deltas.narrow(-1, 2).exp();
        factor.mul(&sides)
    };
    Tensor::cat(&centres, &[&scaled], -1)
}

/// What is scored: classes and boxes of all groups' queries.
struct Scored {
    logits: Tensor,
    boxes: Tensor,
}

impl Net for RfDetr {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, _, targets] = batch else {
            return Output::empty(cx);
        };
        let (found, states, reference, features) = cx.module("model", |cx| self.model(cx, image));
        let first = self.proposals.logits(cx, &found.states);
        let heads = |states: &Tensor| {
            let logits = cx.linear("class_embed", states, self.classes, true);
            let deltas = cx.module("bbox_embed", |cx| {
                perceptron(cx, states, &[self.hidden, self.hidden, 4])
            });
            let boxes = refined(&reference, &deltas);
            Scored { logits, boxes }
        };
        let last = heads(&states.select(0));
        let all = heads(&states);
        let of_encoder = Scored {
            logits: first,
            boxes: found.coordinates.clone(),
        };
        let groups = self.proposals.groups;
        let loss = cx.module("loss", |cx| {
            loss::loss(cx, [&last, &all, &of_encoder], targets, groups)
        });
        let held = [&last, &all, &of_encoder]
            .into_iter()
            .flat_map(|scored| [scored.logits.clone(), scored.boxes.clone()])
            .chain([states, reference, features])
            .collect();
        Output { loss, held }
    }
}

impl RfDetr {
    /// The encoder's best places, the decoder's states `[layers, B, Q, H]`, where its queries look, and the map.
    fn model(&self, cx: &Cx, image: &Tensor) -> (proposals::Found, Tensor, Tensor, Tensor) {
        let n = image.size(0);
        let pixels = [n, image.size(2), image.size(3)];
        let mask = image.constant("ones", &pixels, DType::I64);
        let map = cx.module("backbone", |cx| {
            let map = self.backbone.run(cx, image, self.hidden);
            drop(mask.constant("float", &pixels, DType::F32));
            map
        });
        let grid = [map.size(2), map.size(3)];
        let count = grid[0].saturating_mul(grid[1]);
        let flat = map.reshape(&[n, self.hidden, count]).transpose(1, 2);
        let padding = image.constant("not", &[n, count], DType::Bool);
        let found = self.proposals.run(cx, &flat, &padding);
        let total = self.proposals.all_queries();
        let start = cx.module("reference_point_embed", |cx| {
            cx.param("weight", [total, 4]).tensor()
        });
        let queries = cx.module("query_feat", |cx| {
            cx.param("weight", [total, self.hidden]).tensor()
        });
        let wide = |table: &Tensor, width| table.unsqueeze(0).expand(&[n, total, width]);
        let reference = {
            let deltas = wide(&start, 4);
            let moved = refined(&found.reference, &deltas);
            Tensor::cat(&moved, &[], -2)
        };
        let target = wide(&queries, self.hidden);
        let states = cx.module("decoder", |cx| {
            self.decoder
                .run(cx, [&target, &reference], &flat, grid, &padding)
        });
        drop(mask);
        let stacked = Tensor::stack(std::slice::from_ref(&reference), 0);
        let reference = stacked.unwrap_or(reference);
        (found, states, reference, map)
    }
}
