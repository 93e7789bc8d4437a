//! The indexer of DeepSeek Sparse Attention (`DeepseekV32Indexer` in transformers/models/deepseek_v32/modeling_deepseek_v32.py):
//! small heads score all keys without gradients, and a token sees those that score best.

use super::super::Cx;
use super::family::{Indexer, Rope};
use super::{LayerInputs, Mla, rope};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// The mask over the keys that the indexer chooses, and what the caller's variables keep alive.
pub(super) fn indexed_mask(
    cx: &Cx,
    x: &Tensor,
    compressed_queries: &Tensor,
    inputs: &LayerInputs,
    (mla, indexer): (Mla, Indexer),
) -> (AttentionMask, Vec<Tensor>) {
    let AttentionMask::Given(mask) = &inputs.attention_mask else {
        return (inputs.attention_mask.clone(), Vec::new());
    };
    let (b, s) = (x.size(0), x.size(1));
    let chosen = cx.module("indexer", |cx| {
        cx.tape
            .no_grad(|| chosen_keys(cx, [x, compressed_queries], mask, inputs, (mla, indexer)))
    });
    let hidden = {
        let ones = x.constant("new_ones", &[b, s, s], DType::Bool);
        let wide = chosen.constant("to", chosen.shape(), DType::I64);
        let hidden = x.constant("scatter", &[b, s, s], DType::Bool);
        drop((ones, wide));
        hidden
    };
    let visible = if mask.dtype() == DType::Bool {
        let shown = x.constant("bitwise_not", &[b, 1, s, s], DType::Bool);
        let both = x.constant("bitwise_and", &[b, 1, s, s], DType::Bool);
        drop(shown);
        both
    } else {
        x.constant("masked_fill", &[b, 1, s, s], mask.dtype())
    };
    (AttentionMask::Given(visible), vec![chosen, hidden])
}

/// `DeepseekV32Indexer.forward`: the numbers of the best keys `[B, S, K]`.
fn chosen_keys(
    cx: &Cx,
    [x, compressed_queries]: [&Tensor; 2],
    mask: &Tensor,
    inputs: &LayerInputs,
    (mla, indexer): (Mla, Indexer),
) -> Tensor {
    let (b, s) = (x.size(0), x.size(1));
    let (h, d) = (mla.index_heads, mla.index_head_dim);
    let turning = mla.qk_rope_head_dim.min(d);
    let rest = d - turning;
    let mut q = cx
        .linear("wq_b", compressed_queries, h * d, false)
        .view(&[b, s, h, d]);
    let q_parts = q.split(&[turning, rest], -1);
    let mut k = cx
        .linear("wk", x, d, false)
        .pipe(|keys| cx.layer_norm("k_norm", keys))
        .unsqueeze(2);
    let k_parts = k.split(&[turning, rest], -1);
    let mut held = Vec::new();
    if let (Some(tables), [q_turning, q_rest], [k_turning, k_rest]) =
        (&inputs.rotary, &q_parts[..], &k_parts[..])
    {
        // The tables have a dimension for heads before that of places: here it is behind them.
        let rope = match indexer {
            Indexer::Halves => Rope::Full,
            Indexer::Neighbours => Rope::Deinterleaved,
        };
        let across = |t: &Tensor| t.transpose(1, 2);
        let (turned_q, turned_k, _) =
            rope::apply(&across(q_turning), &across(k_turning), tables, rope);
        let [turned_q, turned_k] = [turned_q, turned_k].map(|t| across(&t));
        let (whole_q, whole_k) = (
            Tensor::cat(&turned_q, &[q_rest], -1),
            Tensor::cat(&turned_k, &[k_rest], -1),
        );
        held.extend([q, k, turned_q, turned_k]);
        (q, k) = (whole_q, whole_k);
    }
    k = k.squeeze(2);
    let mut scores = {
        let wide_q = q.to(DType::F32);
        let wide_k = k.transpose(-1, -2).to(DType::F32);
        wide_q.matmul(&wide_k.unsqueeze(1))
    };
    scores = scores.mul_scalar();
    scores = scores.relu();
    let weights = cx
        .linear("weights_proj", x, h, false)
        .pipe(|weights| weights.to(DType::F32))
        .pipe(Tensor::mul_scalar);
    let mut index_scores = weights.unsqueeze(-2).matmul(&scores).squeeze(-2);
    index_scores = if mask.dtype() == DType::Bool {
        let hidden = x.constant("bitwise_not", &[b, s, s], DType::Bool);
        index_scores.masked_fill(&hidden)
    } else {
        index_scores.constant("add", &[b, s, s], DType::F32)
    };
    let (best, chosen) = index_scores.topk(mla.index_topk.max(1).min(s));
    drop(best);
    let small = chosen.constant("to", chosen.shape(), DType::I32);
    drop((held, q, k, scores, weights, index_scores));
    small
}
