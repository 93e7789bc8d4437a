//! `sparsemixer` of Phi-3.5-MoE (transformers/models/phimoe/modeling_phimoe.py): two experts for each token, drawn one after the
//! other from those near the best.

use super::super::Cx;
use super::Decoder;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `PhimoeTopKRouter.forward` in training.
    pub(super) fn sparse_mixer(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor, Tensor) {
        let logits = x.linear(
            &cx.param("weight", [self.experts, self.hidden]).tensor(),
            None,
        );
        let (first, first_chosen) = drawn(&logits);
        // The drawn expert is out of the second draw.
        let hidden = logits.constant("scatter", logits.shape(), DType::Bool);
        let rest = logits.masked_fill(&hidden);
        drop(hidden);
        let (second, second_chosen) = drawn(&rest);
        let weights = Tensor::cat(&first, &[&second], -1);
        let chosen = logits.constant("cat", &[x.size(0), 2], DType::I64);
        drop((first, second, first_chosen, second_chosen, rest));
        (logits, weights, chosen)
    }
}

/// One draw: the weight of the expert and its number, a row for each token.
fn drawn(scores: &Tensor) -> (Tensor, Tensor) {
    let (one, dtype) = ([scores.size(0), 1], scores.dtype());
    let all = |op, dtype| scores.constant(op, scores.shape(), dtype);
    let best = [
        scores.constant("max", &one, dtype),
        scores.constant("max", &one, DType::I64),
    ];
    let factor = all("clamp", dtype);
    let far = all("gt", DType::Bool);
    let gates = scores.masked_fill(&far);
    let chosen = {
        let noise = all("exponential_", dtype);
        let log = all("log", dtype);
        drop(noise);
        let sum = all("sub", dtype);
        drop(log);
        let chosen = scores.constant("max", &one, DType::I64);
        drop(sum);
        chosen
    };
    let shares = gates.softmax(None);
    drop(gates);
    let weight = shares.gathered(&chosen);
    // `PhimoeMultiplier`, which saves the gates and the weight.
    let scale = scores.constant("type_as", &one, shares.dtype());
    let weight = weight.mul(&scale);
    drop((best, factor, far, shares));
    (weight, chosen)
}
