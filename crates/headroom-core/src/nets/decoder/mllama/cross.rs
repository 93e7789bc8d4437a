//! What layers that attend to pictures are given, and such a layer (`MllamaCrossAttentionDecoderLayer`).

use crate::nets::Cx;
use crate::nets::decoder::{Decoder, attention};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone)]
pub(super) struct Cross {
    /// The projected states of all tiles `[B * tiles, patches, H]`.
    states: Tensor,
    /// Which of them each token sees `[B, 1, S, tiles * patches]`.
    mask: Tensor,
    /// Zero for tokens that see none `[B, 1, S, 1]`.
    sees: Tensor,
}

impl Cross {
    /// `_prepare_cross_attention_mask`.
    pub(super) fn new(cx: &Cx, states: Tensor, looks: &Tensor, patches: u64) -> Self {
        let dtype = cx.env.weights;
        let (b, s) = (looks.size(0), looks.size(1));
        let seen = looks
            .size(2)
            .saturating_mul(looks.size(3))
            .saturating_mul(patches);
        let make = |op, shape: &[u64], dtype| looks.constant(op, shape, dtype);
        let whole = [b, 1, s, seen];
        let repeated = make("repeat_interleave", &whole, DType::I64);
        let inverted = {
            let wide = make("rsub", &whole, DType::F32);
            if dtype == DType::F32 {
                wide
            } else {
                let narrow = make("to", &whole, dtype);
                drop(wide);
                narrow
            }
        };
        let mask = {
            let closed = make("to", &whole, DType::Bool);
            let mask = make("masked_fill", &whole, dtype);
            drop(closed);
            mask
        };
        let sees = {
            let open = make("ne", &whole, DType::Bool);
            let any = make("any", &[b, 1, s], DType::Bool);
            drop(open);
            let sees = make("to", &[b, 1, s, 1], dtype);
            drop(any);
            sees
        };
        drop((repeated, inverted));
        Self { states, mask, sees }
    }

    pub(super) fn layer(&self, cx: &Cx, text: &Decoder, input: &Tensor) -> Tensor {
        let gated = |name, x: &Tensor| {
            let gate = cx.param(name, [1]).tensor().tanh();
            gate.mul(x)
        };
        let mut hidden = cx.rms_norm("input_layernorm", input);
        let (attended, weights) = cx.module("cross_attn", |cx| self.attention(cx, text, &hidden));
        hidden = attended;
        hidden = gated("cross_attn_attn_gate", &hidden).pipe(|gated| input.add(gated));
        let residual = hidden.clone();
        hidden = cx.rms_norm("post_attention_layernorm", &hidden);
        hidden = text.mlp(cx, &hidden);
        hidden = self.sees.select(1).mul(&hidden);
        hidden = gated("cross_attn_mlp_gate", &hidden).pipe(|gated| residual.add(gated));
        drop(weights);
        hidden
    }

    fn attention(&self, cx: &Cx, text: &Decoder, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let (b, s) = (x.size(0), x.size(1));
        let split = |rows: Tensor, n: u64| {
            let count = rows.numel() / (b * n * text.head_dim).max(1);
            rows.reshape(&[b, count, n, text.head_dim]).transpose(1, 2)
        };
        let (queries, keys) = (
            text.heads * text.head_dim,
            text.key_value_heads * text.head_dim,
        );
        let mut q = split(cx.linear("q_proj", x, queries, false), text.heads);
        q = cx.rms_norm("q_norm", &q);
        let project = |name| {
            split(
                cx.linear(name, &self.states, keys, false),
                text.key_value_heads,
            )
        };
        let (mut k, v) = (project("k_proj"), project("v_proj"));
        k = cx.rms_norm("k_norm", &k);
        let groups = text.heads / text.key_value_heads;
        let mask = AttentionMask::Given(self.mask.clone());
        let (mut out, weights) =
            attention::attention_function(cx, [&q, &k, &v], &mask, groups, false, 0.0);
        out = out.reshape(&[b, s, queries]).contiguous();
        (cx.linear("o_proj", &out, text.hidden, false), weights)
    }
}
