//! `GroundingDinoDecoder`: queries read each other, the words, and points of the maps.

use super::GroundingDino;
use crate::nets::Cx;
use crate::nets::attention::heads as split_heads;
use crate::nets::detection::deformable::{Maps, Sampling};
use crate::nets::detection::perceptron;
use crate::tape::Tensor;

impl GroundingDino {
    /// The normed states behind each layer, and where the queries were.
    pub(super) fn decoder(
        &self,
        cx: &Cx,
        target: &Tensor,
        references: &Tensor,
        words: &Tensor,
        maps: &Maps,
    ) -> [Tensor; 2] {
        let (n, queries) = (target.size(0), target.size(1));
        let levels = maps.grids.len() as u64;
        let shape = [n, self.decoder_heads, queries, words.size(1)];
        let mask = words.constant("mul", &shape, words.dtype());
        let mut hidden = target.clone();
        let mut reference = references.clone();
        let (mut states, mut places) = (Vec::new(), Vec::new());
        for i in 0..self.decoder_layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let around = reference.constant("mul", &[n, queries, levels, 4], reference.dtype());
            let position = {
                let shape = [n, queries, self.hidden.saturating_mul(2)];
                let wide = around.constant("cat", &shape, around.dtype());
                cx.module("reference_points_head", |cx| {
                    perceptron(cx, &wide, &[self.hidden, self.hidden])
                })
            };
            let (this, words, maps, mask) =
                (self.clone(), words.clone(), maps.clone(), mask.clone());
            let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                let given = [&position, &around, &mask];
                let run = |x| this.query_layer(cx, x, given, &words, &maps);
                state.iter().map(run).collect()
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden);
            reference = {
                let moved = self.box_head(&cx.root(), &hidden);
                let before = moved.constant("logit", moved.shape(), reference.dtype());
                moved.add(&before).pipe(Tensor::sigmoid).detach()
            };
            states.push(cx.layer_norm("layer_norm", &hidden));
            places.push(reference.clone());
        }
        let stacked = |all: &[Tensor]| Tensor::stack(all, 1).unwrap_or_else(|| target.clone());
        [stacked(&states), stacked(&places)]
    }

    /// `GroundingDinoDecoderLayer.forward`.
    fn query_layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        [position, around, mask]: [&Tensor; 3],
        words: &Tensor,
        maps: &Maps,
    ) -> Tensor {
        let heads = self.decoder_heads;
        let added = |norm, before: &Tensor, read: Tensor| {
            let dropped = cx.dropout(&read, 0.1);
            drop(read);
            let sum = before.add(&dropped);
            drop(dropped);
            cx.layer_norm(norm, &sum)
        };
        let read = cx.module("self_attn", |cx| {
            let placed = input.add(position);
            eager(cx, [&placed, &placed, input], heads, None)
        });
        let mut hidden = added("self_attn_layer_norm", input, read);
        let read = cx.module("encoder_attn_text", |cx| {
            let placed = hidden.add(position);
            eager(cx, [&placed, words, words], heads, Some(mask))
        });
        hidden = added("encoder_attn_text_layer_norm", &hidden, read);
        let sampling = Sampling {
            heads,
            points: self.decoder_points,
            one_copy: false,
        };
        let read = cx.module("encoder_attn", |cx| {
            let placed = hidden.add(position);
            sampling.run(cx, &placed, around, maps)
        });
        hidden = added("encoder_attn_layer_norm", &hidden, read);
        self.fed(cx, &hidden, self.decoder_ffn)
    }
}

/// `GroundingDinoMultiheadAttention.forward`, which has no fused kernel.
pub(super) fn eager(
    cx: &Cx,
    [queries, keys, values]: [&Tensor; 3],
    heads: u64,
    mask: Option<&Tensor>,
) -> Tensor {
    let width = queries.size(-1);
    let project = |name, x: &Tensor| split_heads(&cx.linear(name, x, width, true), heads);
    let (q, k, v) = (
        project("query", queries),
        project("key", keys),
        project("value", values),
    );
    let mut scores = q.matmul(&k.transpose(2, 3)).pipe(Tensor::mul_scalar);
    if let Some(mask) = mask {
        scores = scores.add(mask);
    }
    let shares = scores.pipe(|scores| scores.softmax(None));
    let read = shares.matmul(&v).transpose(1, 2).contiguous();
    let read = read.reshape(queries.shape());
    cx.linear("out_proj", &read, width, true)
}
