//! The mask of encoders (`create_bidirectional_mask` in transformers' masking_utils.py).

use super::Cx;
use super::inputs::additive;
use crate::scenario::Attention;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// No mask at all without padding; else Boolean `[B, 1, S, S]`, for eager attention as a bias of type `dtype`.
pub fn bidirectional_mask(
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

/// `sdpa_mask` with `bidirectional_mask_function` and `padding_mask_function` in `and_masks`.
fn allowed(padding: &Tensor, queries: u64) -> Tensor {
    let (b, keys) = (padding.size(0), padding.size(1));
    let index = |n: u64| padding.constant("arange", &[n], DType::I64);
    let moved = |n: u64| index(n).then(Tensor::shift);
    let (batches, heads, rows, columns) = (index(b), index(1), moved(queries), moved(keys));
    let mut result = padding.constant("new_ones", &[0; 0], DType::Bool);
    result = {
        let all = padding.constant("ge", &[1, 1, queries, 1], DType::Bool);
        let both = result.constant("bitwise_and", all.shape(), DType::Bool);
        drop(all);
        both
    };
    result = {
        let places = (index(b * keys), index(b * keys));
        let real = padding.constant("index", &[b, 1, 1, keys], DType::Bool);
        drop(places);
        let both = result.constant("bitwise_and", &[b, 1, queries, keys], DType::Bool);
        drop(real);
        both
    };
    drop((batches, heads, rows, columns));
    result
}
