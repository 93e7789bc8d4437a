//! Attention within a window to either side, by chunks of twice its length that overlap
//! (`LongformerSelfAttention` in transformers/models/longformer/modeling_longformer.py; `LEDEncoderSelfAttention` is the same).

use super::Cx;
use super::encoder::unread_dense;
use crate::tape::{DType, Tensor};

/// What sets a layer's attention apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlidingChunks {
    pub hidden: u64,
    pub heads: u64,
    /// Tokens that are seen to either side: half of `attention_window`.
    pub reach: u64,
    pub dropout: f64,
    /// The first token is seen by all and sees all, as the classes of sequences have it.
    pub global: bool,
}

/// The next multiple of the window: `_pad_to_window_size`.
pub(crate) fn padded_length(length: u64, window: u64) -> u64 {
    length.div_ceil(window.max(1)).saturating_mul(window.max(1))
}

impl SlidingChunks {
    /// The module's `forward` of `[B, S, H]`, where S is a multiple of the window.
    pub(crate) fn forward(self, cx: &Cx, x: &Tensor) -> Tensor {
        let Self { hidden, heads, .. } = self;
        let (b, s, d) = (x.size(0), x.size(1), hidden / heads);
        let rows = x.transpose(0, 1);
        let [mut q, k, v] =
            ["query", "key", "value"].map(|name| cx.linear(name, &rows, hidden, true));
        q = q.div_scalar_();
        let split = |x: &Tensor| x.view(&[s, b, heads, d]).transpose(0, 1);
        let (q, k, v) = (split(&q), split(&k), split(&v));
        let mut scores = self.scores(&q, &k);
        scores = {
            let mask = self.mask(x, s);
            scores.add_(&mask)
        };
        let wide = scores.softmax(Some(DType::F32));
        let hidden_rows = wide.constant("index", &[b, s, 1, 1], DType::Bool);
        let mut shares = wide.masked_fill(&hidden_rows);
        drop((wide, hidden_rows));
        shares = shares.to(scores.dtype());
        drop(scores);
        shares = cx.dropout(&shares, self.dropout);
        let mut out = self.read(&shares, &v);
        out = out.transpose(0, 1).reshape(&[s, b, hidden]).contiguous();
        if self.global {
            out = self.seen_by_all(cx, &rows, &out);
        } else {
            for name in ["query_global", "key_global", "value_global"] {
                unread_dense(cx, name, hidden);
            }
        }
        let out = out.transpose(0, 1);
        drop((q, k, v, shares));
        out
    }

    /// `_sliding_chunks_query_key_matmul`: `[B, S, heads, 2 w + 1]`.
    fn scores(self, q: &Tensor, k: &Tensor) -> Tensor {
        let (b, s, h, d) = (q.size(0), q.size(1), q.size(2), q.size(3));
        let w = self.reach;
        let count = (s / w).saturating_sub(1);
        let chunks = |x: &Tensor| {
            let rows = x.transpose(1, 2).reshape(&[b * h, s, d]);
            rows.overlapping(&[b * h * count, 2 * w, d])
        };
        let (q, k) = (chunks(q), chunks(k));
        let mut by_chunk = q.bmm(&k.transpose(1, 2));
        drop((q, k));
        by_chunk = by_chunk
            .view(&[b * h, count, 2 * w, 2 * w])
            .pad_to(&[b * h, count, 2 * w + 1, 2 * w])
            .view(&[b * h, count, 2 * w, 2 * w + 1]);
        let shape = [b * h, count + 1, w, 2 * w + 1];
        let mut all = by_chunk.constant("new_zeros", &shape, by_chunk.dtype());
        let part = |chunks: u64, rows: u64, columns: u64| {
            by_chunk
                .narrow(1, chunks)
                .narrow(2, rows)
                .narrow(3, columns)
        };
        for part in [
            part(count, w, w + 1),
            part(1, w, w + 1),
            part(count, w, w),
            part(1, w.saturating_sub(1), w.saturating_sub(1)),
        ] {
            all = all.copy_into_slice_(&part);
        }
        let out = all.view(&[b, h, s, 2 * w + 1]).transpose(2, 1);
        self.without_ends(out)
    }

    /// `_mask_invalid_locations`: what would be before the first token and behind the last.
    fn without_ends(self, mut scores: Tensor) -> Tensor {
        let (b, h, w) = (scores.size(0), scores.size(2), self.reach);
        let shape = [b, w, h, w + 1];
        for _ in 0..2 {
            let end = scores.narrow(1, w).narrow(3, w + 1);
            let full = end.constant("full_like", &shape, end.dtype());
            let mask = end.constant("to", &shape, DType::Bool);
            let kept = end.masked_fill(&mask);
            drop((full, mask));
            scores = scores.copy_into_slice_(&kept);
        }
        scores
    }

    /// `diagonal_mask`, made by the same function of a mask of one head.
    fn mask(self, x: &Tensor, s: u64) -> Tensor {
        let (b, w) = (x.size(0), self.reach);
        let count = (s / w).saturating_sub(1);
        let make = |op, shape: &[u64]| x.constant(op, shape, x.dtype());
        let given = (
            make("masked_fill", &[b, s, 1, 1]),
            make("ones", &[b, s, 1, 1]),
        );
        let by_chunk = make("bmm", &[b * count, 2 * w, 2 * w]);
        let padded = make("pad", &[b * count, 2 * w + 1, 2 * w]);
        drop(by_chunk);
        let out = make("new_zeros", &[b, s, 1, 2 * w + 1]);
        drop((given, padded));
        out
    }

    /// `_sliding_chunks_matmul_attn_probs_value`: `[B, S, heads, D]`.
    fn read(self, shares: &Tensor, v: &Tensor) -> Tensor {
        let (b, s, h, d) = (v.size(0), v.size(1), v.size(2), v.size(3));
        let w = self.reach;
        let count = s / w;
        let chunked = shares
            .transpose(1, 2)
            .reshape(&[b * h, count, w, 2 * w + 1]);
        let rows = v.transpose(1, 2).reshape(&[b * h, s, d]);
        let padded = rows.pad_to(&[b * h, s + 2 * w, d]);
        let wide = chunked.pad_to(&[b * h, count, w, 3 * w + 2]);
        drop(chunked);
        let values = padded.overlapping(&[b * h * count, 3 * w, d]);
        let wide = wide.narrow(3, 3 * w).reshape(&[b * h * count, w, 3 * w]);
        let context = wide.bmm(&values);
        drop((rows, padded, wide, values));
        context.view(&[b, h, s, d]).transpose(1, 2)
    }

    /// `_compute_global_attn_output_from_hidden` for the first token of each sample, written over its rows.
    fn seen_by_all(self, cx: &Cx, rows: &Tensor, out: &Tensor) -> Tensor {
        let Self { hidden, heads, .. } = self;
        let (s, b, d) = (rows.size(0), rows.size(1), hidden / heads);
        let first = rows.narrow(0, 1).contiguous();
        let q = cx
            .linear("query_global", &first, hidden, true)
            .pipe(Tensor::div_scalar_);
        let [k, v] = ["key_global", "value_global"]
            .map(|name| cx.linear(name, rows, hidden, true).view(&[s, b * heads, d]));
        let q = q.view(&[1, b * heads, d]).transpose(0, 1);
        let (k, v) = (k.transpose(0, 1), v.transpose(0, 1));
        let scores = q.bmm(&k.transpose(1, 2));
        let shares = scores.softmax(Some(DType::F32)).to(scores.dtype());
        let shares = cx.dropout(&shares, self.dropout);
        let read = shares.bmm(&v).view(&[1, b, hidden]);
        let written = out.copy_into_slice_(&read);
        drop((first, q, k, v, scores, shares, read));
        written
    }
}
