//! ViT's layer under its older names, as YOLOS, DPT and VideoMAE have it (`YolosLayer`, `DPTViTLayer`, `VideoMAELayer`).

use crate::nets::Cx;
use crate::nets::attention::{Eager, attend, heads};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainLayer {
    pub hidden: u64,
    pub heads: u64,
    pub ffn: u64,
    /// Biases of queries, keys and values.
    pub biases: [bool; 3],
}

impl PlainLayer {
    /// The constructor makes the norms last.
    pub(crate) fn run(self, cx: &Cx, input: &Tensor) -> Tensor {
        let normed = cx.layer_norm("layernorm_before", input);
        let attended = cx.module("attention", |cx| {
            let (out, weights) = cx.module("attention", |cx| self.attention(cx, &normed));
            let out = cx.module("output", |cx| cx.linear("dense", &out, self.hidden, true));
            drop(weights);
            out
        });
        let hidden = attended.add(input);
        let mut x = cx.layer_norm("layernorm_after", &hidden);
        x = cx.module("intermediate", |cx| {
            cx.linear("dense", &x, self.ffn, true).pipe(Tensor::gelu)
        });
        let out = cx.module("output", |cx| {
            let x = cx.linear("dense", &x, self.hidden, true);
            x.add(&hidden)
        });
        drop((normed, attended));
        out
    }

    fn attention(self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = [0, 1, 2].map(|i: usize| {
            let name = ["query", "key", "value"][i];
            heads(&cx.linear(name, x, self.hidden, self.biases[i]), self.heads)
        });
        let eager = Eager { in_fp32: false };
        let none = AttentionMask::None;
        let (out, weights) = attend(cx, [&q, &k, &v], &none, 0.0, eager);
        (out.reshape(x.shape()), weights)
    }
}
