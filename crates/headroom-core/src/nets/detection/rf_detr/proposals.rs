//! The encoder's best places for each group of queries (`generate_topk_proposals`).

use super::refined;
use crate::nets::Cx;
use crate::nets::detection::perceptron;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Proposals {
    pub(super) hidden: u64,
    pub(super) classes: u64,
    pub(super) groups: u64,
    /// Queries of a group.
    pub(super) queries: u64,
}

/// Of all groups: boxes without history, boxes, and states.
pub(super) struct Found {
    pub(super) reference: Tensor,
    pub(super) coordinates: Tensor,
    pub(super) states: Tensor,
}

impl Proposals {
    pub(super) fn all_queries(self) -> u64 {
        self.groups.saturating_mul(self.queries)
    }

    pub(super) fn run(self, cx: &Cx, flat: &Tensor, padding: &Tensor) -> Found {
        let (n, count) = (flat.size(0), flat.size(1));
        let dtype = flat.dtype();
        let invalid = padding.constant("or", &[n, count, 1], DType::Bool);
        let boxes = flat.constant("masked_fill", &[n, count, 4], dtype);
        let memory = flat.masked_fill(&invalid);
        let make = |width| flat.constant("empty", &[n, self.all_queries(), width], dtype);
        let reference = make(4);
        let mut coordinates = make(4);
        let mut states = make(self.hidden);
        for group in 0..self.groups as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let (best, own) = self.of_group(cx, group, [&memory, &boxes, &invalid]);
            coordinates = coordinates.copy_into_slice_(&own);
            states = states.copy_into_slice_(&best);
        }
        Found {
            reference,
            coordinates,
            states,
        }
    }

    /// States and boxes of the best places.
    fn of_group(
        self,
        cx: &Cx,
        group: usize,
        [memory, boxes, invalid]: [&Tensor; 3],
    ) -> (Tensor, Tensor) {
        let mut states = cx.list_item("enc_output", group, |cx| linear(cx, memory, self.hidden));
        states = cx.list_item("enc_output_norm", group, |cx| {
            let weight = cx.param("weight", [self.hidden]).tensor();
            let bias = cx.param("bias", [self.hidden]).tensor();
            states.layer_norm(Some(&weight), Some(&bias))
        });
        let mut scores = cx.list_item("enc_out_class_embed", group, |cx| {
            linear(cx, &states, self.classes)
        });
        let deltas = cx.list_item("enc_out_bbox_embed", group, |cx| {
            perceptron(cx, &states, &[self.hidden, self.hidden, 4])
        });
        scores = scores.masked_fill(invalid);
        let found = refined(boxes, &deltas);
        let best = {
            let highest = scores.max_values();
            highest.constant("topk", &[highest.size(0), self.queries], DType::I64)
        };
        let at = |x: &Tensor| {
            let shape = [best.size(0), best.size(1), x.size(-1)];
            x.gathered(&best.unsqueeze(-1).expand(&shape))
        };
        let own = at(&found);
        (at(&states), own)
    }

    /// `predict_encoder_class_logits`.
    pub(super) fn logits(self, cx: &Cx, states: &Tensor) -> Tensor {
        let parts = states.split(&vec![self.queries; self.groups as usize], 1);
        let scored: Vec<Tensor> = cx.module("model", |cx| {
            let each = parts.iter().enumerate();
            each.map(|(group, part)| {
                cx.list_item("enc_out_class_embed", group, |cx| {
                    linear(cx, part, self.classes)
                })
            })
            .collect()
        });
        super::super::joined(&scored, 1, states)
    }
}

/// A linear layer that is an item of a list.
fn linear(cx: &Cx, x: &Tensor, out: u64) -> Tensor {
    let weight = cx.param("weight", [out, x.size(-1)]).tensor();
    let bias = cx.param("bias", [out]).tensor();
    x.linear(&weight, Some(&bias))
}
