//! What every language model makes before its first layer: ids, positions, masks.

use super::Cx;
use crate::scenario::{Attention, Data};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// Token ids, their labels and, where samples are padded, the padding mask.
pub fn token_ids_and_labels(cx: &Cx, data: &Data) -> Vec<Tensor> {
    let shape = [data.micro_batch, data.sequence];
    let mut all = vec![
        cx.tape.empty("input_ids", shape, DType::I64),
        cx.tape.empty("labels", shape, DType::I64),
    ];
    if data.padding_mask {
        all.push(cx.tape.empty("attention_mask", shape, DType::I64));
    }
    all
}

/// `position_ids`: `arange(s)`, moved by what a cache holds.
pub fn positions(ids: &Tensor) -> Tensor {
    let s = ids.size(1);
    let from_zero = ids.constant("arange", &[s], DType::I64);
    let moved = from_zero.shift();
    drop(from_zero);
    moved.unsqueeze(0)
}

/// The causal mask of transformers' masking_utils.py for the attention in force.
pub fn causal_mask(cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, dtype: DType) -> AttentionMask {
    let (b, s) = (ids.size(0), ids.size(1));
    let Some(_) = padding else {
        packed_sequence_probe(ids);
        return match cx.env.training.attention {
            Attention::Sdpa => AttentionMask::Causal,
            Attention::Eager => AttentionMask::Given(eager_mask(ids, 1, s, dtype)),
        };
    };
    let allowed = ids.constant("mask", &[1, 1, s, s], DType::Bool);
    let padded = ids.constant("mask", &[b, 1, 1, s], DType::Bool);
    let both = ids.constant("mask", &[b, 1, s, s], DType::Bool);
    drop((allowed, padded));
    match cx.env.training.attention {
        Attention::Sdpa => AttentionMask::Given(both),
        Attention::Eager => {
            drop(both);
            AttentionMask::Given(eager_mask(ids, b, s, dtype))
        }
    }
}

fn eager_mask(ids: &Tensor, b: u64, s: u64, dtype: DType) -> Tensor {
    ids.constant("mask", &[b, 1, s, s], dtype)
}

/// `find_packed_sequence_indices`: whether positions start over somewhere.
fn packed_sequence_probe(ids: &Tensor) {
    let (b, s) = (ids.size(0), ids.size(1));
    let first = ids.constant("sub", &[b, 1], DType::I64);
    let joined = ids.constant("cat", &[b, s + 1], DType::I64);
    let steps = ids.constant("sub", &[b, s], DType::I64);
    drop((joined, first));
    let starts = ids.constant("ne", &[b, s], DType::Bool);
    let sums = ids.constant("cumsum", &[b, s], DType::I64);
    drop((starts, steps, sums));
}
