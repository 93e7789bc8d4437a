//! `RTDetrDecoder`: each layer attends among queries, then to some points of each map, and refines the queries' boxes.

use super::hybrid::self_attention;
use super::{Queries, perceptron};
use crate::nets::detection::deformable::{Maps, Sampling};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    points: u64,
    /// The second version samples all maps from one copy of the values.
    second: bool,
    /// `learn_initial_query`.
    learned: bool,
}

pub(super) struct Decoded {
    pub(super) logits: Tensor,
    pub(super) boxes: Tensor,
    pub(super) held: Vec<Tensor>,
    /// Distributions of corners and the boxes that they are of, of each layer (D-FINE).
    pub(super) corners: Option<[Tensor; 2]>,
}

impl Queries for Decoder {
    fn learned(&self) -> bool {
        self.learned
    }

    fn forward(
        &self,
        cx: &Cx,
        queries: [&Tensor; 2],
        maps: &Maps,
        mask: Option<&Tensor>,
        classes: u64,
    ) -> Decoded {
        self.decoded(cx, queries, maps, mask, classes)
    }
}

impl Decoder {
    pub(super) fn new(sizes: &Sizes, second: bool) -> Result<Self, ModelError> {
        Ok(Self {
            hidden: sizes.need("hidden")?,
            layers: sizes.or("decoder_layers", 6),
            heads: sizes.or("decoder_heads", 8).max(1),
            ffn: sizes.or("decoder_ffn", 1024),
            points: sizes.or("points", 4),
            second,
            learned: sizes.is_set("learned_queries"),
        })
    }

    fn decoded(
        &self,
        cx: &Cx,
        [target, reference]: [&Tensor; 2],
        maps: &Maps,
        mask: Option<&Tensor>,
        classes: u64,
    ) -> Decoded {
        let mask = mask.map_or(AttentionMask::None, |mask| {
            AttentionMask::Given(mask.clone())
        });
        let mut reference = reference.sigmoid();
        let mut hidden = target.clone();
        let (mut states, mut boxes, mut logits) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..self.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let places = cx.module("query_pos_head", |cx| {
                perceptron(
                    cx,
                    &reference,
                    &[self.hidden.saturating_mul(2), self.hidden],
                )
            });
            let (this, maps, mask) = (*self, maps.clone(), mask.clone());
            let around = [places, reference.clone()];
            let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                let run = |x| this.layer(cx, x, &around, &maps, &mask);
                state.iter().map(run).collect()
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden);
            let found = cx.list_item("bbox_embed", i, |cx| {
                let corners = perceptron(cx, &hidden, &[self.hidden, self.hidden, 4]);
                let before = inverse_sigmoid(&reference);
                corners.add(&before).pipe(Tensor::sigmoid)
            });
            reference = found.detach();
            states.push(hidden.clone());
            boxes.push(found);
            logits.push(cx.list_item("class_embed", i, |cx| {
                let weight = cx.param("weight", [classes, self.hidden]).tensor();
                let bias = cx.param("bias", [classes]).tensor();
                hidden.linear(&weight, Some(&bias))
            }));
        }
        let stacked = |all: &[Tensor]| Tensor::stack(all, 1).unwrap_or_else(|| target.clone());
        let states = stacked(&states);
        let boxes = stacked(&boxes);
        let logits = stacked(&logits);
        Decoded {
            logits,
            boxes,
            held: vec![states, hidden],
            corners: None,
        }
    }

    fn layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        [places, reference]: &[Tensor; 2],
        maps: &Maps,
        mask: &AttentionMask,
    ) -> Tensor {
        let attended = cx.module("self_attn", |cx| {
            self_attention(cx, input, Some(places), self.heads, mask)
        });
        let mut hidden = input.add(&attended);
        drop(attended);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let sampling = Sampling {
            heads: self.heads,
            points: self.points,
            one_copy: self.second,
        };
        let sampled = cx.module("encoder_attn", |cx| {
            let placed = hidden.add(places);
            sampling.run(cx, &placed, reference, maps)
        });
        hidden = hidden.add(&sampled);
        drop(sampled);
        hidden = cx.layer_norm("encoder_attn_layer_norm", &hidden);
        let out = cx.module("mlp", |cx| {
            let x = cx.linear("fc1", &hidden, self.ffn, true).pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        });
        hidden = hidden.add(&out);
        drop(out);
        cx.layer_norm("final_layer_norm", &hidden)
    }
}

/// `inverse_sigmoid` of what has no history.
pub(super) fn inverse_sigmoid(x: &Tensor) -> Tensor {
    let bounded = x.clamp();
    let parts = {
        let over = bounded.clamp();
        let under = bounded.add_scalar().pipe(Tensor::clamp);
        over.div(&under)
    };
    parts.log()
}
