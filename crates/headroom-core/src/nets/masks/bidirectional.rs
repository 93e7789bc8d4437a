//! The mask of encoders (`create_bidirectional_mask` in transformers' masking_utils.py).

use crate::nets::Cx;
use crate::nets::inputs::additive;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

/// No mask at all without padding; else Boolean `[B, 1, S, S]`, for eager attention as a bias of type `dtype`.
pub(crate) fn bidirectional_mask(
    cx: &Cx,
    queries: u64,
    padding: Option<&Tensor>,
    dtype: DType,
) -> AttentionMask {
    let Some(padding) = padding else {
        return AttentionMask::None;
    };
    let padding = padding.constant("to", padding.shape(), DType::Bool);
    // `padding_mask.all()`.
    drop(padding.constant("all", &[0; 0], DType::Bool));
    if cx.env.training.attention == Attention::Flash2 {
        return AttentionMask::None;
    }
    let mask = allowed(&padding, queries);
    AttentionMask::Given(if cx.env.training.attention == Attention::Eager {
        additive(&mask, padding.size(0), dtype)
    } else {
        mask
    })
}

/// `create_bidirectional_sliding_window_mask` for tokens that attend to `reach` others on either side.
pub(crate) fn sliding_window_mask(
    cx: &Cx,
    ids: &Tensor,
    padding: Option<&Tensor>,
    dtype: DType,
    reach: u64,
) -> AttentionMask {
    let (b, s) = (ids.size(0), ids.size(1));
    let padding = padding.map(|padding| padding.constant("to", padding.shape(), DType::Bool));
    if let Some(padding) = &padding {
        drop(padding.constant("all", &[0; 0], DType::Bool));
    }
    if cx.env.training.attention == Attention::Flash2 {
        return AttentionMask::None;
    }
    let eager = cx.env.training.attention == Attention::Eager;
    if padding.is_none() && s < reach && !eager {
        return AttentionMask::None;
    }
    let mask = within_reach(ids, padding.as_ref());
    AttentionMask::Given(if eager {
        additive(&mask, b, dtype)
    } else {
        mask.expand(&[b, 1, s, s])
    })
}

/// `sdpa_mask` with `sliding_window_bidirectional_mask_function`: distances are 64-bit numbers.
fn within_reach(ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
    let (b, s) = (ids.size(0), ids.size(1));
    let square = |op, dtype| ids.constant(op, &[1, 1, s, s], dtype);
    let index = |n: u64| ids.constant("arange", &[n], DType::I64);
    let moved = || index(s).pipe(Tensor::add_scalar);
    let indices = (index(b), index(1), moved(), moved());
    let one = || ids.constant("new_ones", &[0; 0], DType::Bool);
    let and = |a: Tensor, other: Tensor, batch: u64| {
        let both = ids.constant("bitwise_and", &[batch, 1, s, s], DType::Bool);
        drop((a, other));
        both
    };
    let inner = || {
        let all = one();
        let distance = square("sub", DType::I64);
        let absolute = square("abs", DType::I64);
        drop(distance);
        let near = square("le", DType::Bool);
        drop(absolute);
        let near = and(all, near, 1);
        let in_range = ids.constant("ge", &[1, 1, s, 1], DType::Bool);
        and(near, in_range, 1)
    };
    let mask = if padding.is_some() {
        let all = one();
        let near = inner();
        let mask = and(all, near, 1);
        let indices = (index(b * s), (b > 1).then(|| index(b * s)));
        let not_padding = ids.constant("index", &[b, 1, 1, s], DType::Bool);
        drop(indices);
        and(mask, not_padding, b)
    } else {
        inner()
    };
    drop(indices);
    mask
}

/// `sdpa_mask` with `bidirectional_mask_function` and `padding_mask_function` in `and_masks`.
fn allowed(padding: &Tensor, queries: u64) -> Tensor {
    let (b, keys) = (padding.size(0), padding.size(1));
    let index = |n: u64| padding.constant("arange", &[n], DType::I64);
    let moved = |n: u64| index(n).pipe(Tensor::add_scalar);
    let (batches, heads, rows, columns) = (index(b), index(1), moved(queries), moved(keys));
    let mut result = padding.constant("new_ones", &[0; 0], DType::Bool);
    result = {
        let all = padding.constant("ge", &[1, 1, queries, 1], DType::Bool);
        let both = result.constant("bitwise_and", all.shape(), DType::Bool);
        drop(all);
        both
    };
    result = {
        let indices = (index(b * keys), index(b * keys));
        let not_padding = padding.constant("index", &[b, 1, 1, keys], DType::Bool);
        drop(indices);
        let both = result.constant("bitwise_and", &[b, 1, queries, keys], DType::Bool);
        drop(not_padding);
        both
    };
    drop((batches, heads, rows, columns));
    result
}
