//! WavLM's attention: a bias of relative positions that the first layer makes and each layer gates, and
//! `F.multi_head_attention_forward` with weights, which no fused kernel computes.

use super::Wav2Vec2;
use crate::nets::Cx;
use crate::nets::t5::relative_position_bucket;
use crate::tape::{DType, Tensor};

impl Wav2Vec2 {
    /// The layers, which hand the bias on.
    pub(super) fn gated_layers(&self, cx: &Cx, hidden: Tensor) -> Tensor {
        let this = *self;
        let layer = move |cx: &Cx, state: Vec<Tensor>, i: usize| {
            cx.layer("layers", i, state, move |cx, state| {
                let mut made = None;
                let Some(hidden) = state.first() else {
                    return Vec::new();
                };
                let out = this.layer(cx, hidden, |cx, x| {
                    let bias = match state.get(1) {
                        Some(bias) => bias.clone(),
                        None => this.position_bias(cx, x),
                    };
                    made = Some(bias.clone());
                    this.gated_attention(cx, x, &bias)
                });
                std::iter::once(out).chain(made).collect()
            })
        };
        let first = layer(cx, vec![hidden], 0);
        let rest = self.layers.saturating_sub(1);
        let last = cx.periodic_layers(rest, 1, first, |state, i| layer(cx, state, i + 1));
        match last.into_iter().next() {
            Some(hidden) => hidden,
            None => cx.tape.empty("hidden_states", [0; 0], DType::F32),
        }
    }

    /// `compute_bias`, a copy for each sample and head.
    fn position_bias(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (b, s, h) = (x.size(0), x.size(1), self.heads);
        let relative = x.constant("sub", &[s, s], DType::I64);
        let buckets = relative_position_bucket(&relative, true);
        let values = cx.embedding("rel_attn_embed", &buckets, self.buckets, h);
        drop((relative, buckets));
        let wide = values
            .permute(&[2, 0, 1])
            .unsqueeze(0)
            .expand(&[b, h, s, s]);
        drop(values);
        wide.contiguous().view(&[b * h, s, s])
    }

    fn gated_attention(&self, cx: &Cx, x: &Tensor, bias: &Tensor) -> (Tensor, Option<Tensor>) {
        let (b, s, h) = (x.size(0), x.size(1), self.heads);
        let d = self.hidden / h;
        let gate = {
            let constant = cx.param("gru_rel_pos_const", [1, h, 1, 1]).tensor();
            let heads = x.view(&[b, s, h, d]).permute(&[0, 2, 1, 3]);
            let projected = cx.linear("gru_rel_pos_linear", &heads, 8, true);
            let sums = projected
                .view(&[b, h, s, 2, 4])
                .sum(&[-1])
                .view(&[b, h, s, 2]);
            drop(projected);
            let gates = sums.sigmoid().chunk(2, -1);
            let [first, second] = &gates[..] else {
                return (x.clone(), None);
            };
            let inner = second.mul(&constant).pipe(Tensor::add_scalar);
            first.mul(&inner).pipe(Tensor::add_scalar)
        };
        let gated = gate.reshape(&[b * h, s, 1]).mul(bias);
        let rows = x.transpose(0, 1);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"].map(|name| {
            let projected = cx.linear(name, &rows, self.hidden, true);
            projected.view(&[s, b * h, d]).transpose(0, 1)
        });
        let q = q.mul_scalar();
        let scores = {
            let bias = gated.to(q.dtype());
            q.bmm(&k.transpose(1, 2)).pipe(|scores| scores.add_(&bias))
        };
        let mut weights = scores.softmax(None);
        drop(scores);
        weights = cx.dropout(&weights, 0.1);
        let mut out = weights.bmm(&v).transpose(0, 1);
        out = out.reshape(&[s * b, self.hidden]);
        out = cx.linear("out_proj", &out, self.hidden, true);
        let averaged = weights.view(&[b, h, s, s]).mean(&[1]);
        drop((gate, gated));
        (
            out.view(&[s, b, self.hidden]).transpose(0, 1),
            Some(averaged),
        )
    }
}
