//! `Llama4TextMoe`: every expert is given every token, weighed with zero where it was not chosen.

use super::super::Decoder;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

impl Decoder {
    pub(in crate::nets::decoder) fn repeated_moe(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (experts, inner) = (self.experts, self.moe_intermediate);
        let flat = x.reshape(&[x.numel() / self.hidden.max(1), self.hidden]);
        let tokens = flat.size(0);
        let (scores, logits) = cx.module("router", |cx| {
            let weight = cx.param("weight", [experts, self.hidden]).tensor();
            let logits = flat.linear(&weight, None);
            let (best, _chosen) = logits.topk(self.experts_per_token.min(experts));
            let scores = best.scattered_into("scatter_", &[tokens, experts]);
            let scores = scores.to(DType::F32).pipe(Tensor::sigmoid);
            (scores.to(logits.dtype()), logits)
        });
        let mut routed = flat.tiled(experts);
        let weights = scores.transpose(0, 1).reshape(&[experts * tokens, 1]);
        routed = routed.mul(&weights);
        drop(weights);
        let out = cx.module("experts", |cx| {
            let up = cx.param("gate_up_proj", [experts, self.hidden, 2 * inner]);
            let down = cx.param("down_proj", [experts, inner, self.hidden]);
            let by_expert = routed.view(&[experts, tokens, self.hidden]);
            let both = by_expert.bmm(&up.tensor());
            let mut halves = both.chunk(2, -1);
            let (Some(second), Some(first)) = (halves.pop(), halves.pop()) else {
                return routed.clone();
            };
            let product = first.silu().pipe(|gate| second.mul(gate));
            product.bmm(&down.tensor())
        });
        let mut shared = cx.module("shared_expert", |cx| self.gated_mlp(cx, &flat, inner));
        shared = {
            let sum = out.view(&[experts, tokens, self.hidden]).sum(&[0]);
            shared.add_(&sum.squeeze(0))
        };
        drop((routed, out, scores, logits));
        shared.view(x.shape())
    }
}
