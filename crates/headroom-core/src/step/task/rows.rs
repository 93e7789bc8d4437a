//! The rows of tokens that a trainer passes to its model.

use crate::nets::{Cx, TokenMask};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Token ids `[B, S]` with the collator's other tensors: labels or a mask of the completion, and the attention
/// mask, or position ids where samples are adjacent in one row.
pub(crate) fn batch(cx: &Cx, data: &Data, rows: u64) -> Vec<Tensor> {
    let shape = if data.packing {
        [1, rows.saturating_mul(data.sequence)]
    } else {
        [rows, data.sequence]
    };
    tokens(cx, shape)
}

/// The same for completions that were sampled.
pub(crate) fn tokens(cx: &Cx, shape: [u64; 2]) -> Vec<Tensor> {
    ["input_ids", "labels", "attention_mask"]
        .map(|name| cx.tape.empty(name, shape, DType::I64))
        .to_vec()
}

/// A batch as the model takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub ids: &'a Tensor,
    pub mask: TokenMask<'a>,
}

impl<'a> Rows<'a> {
    /// `None` where the batch lacks what a collator makes.
    pub(crate) fn of(batch: &'a [Tensor], data: &Data) -> Option<Self> {
        let [ids, _labels, mask, ..] = batch else {
            return None;
        };
        let mask = if data.packing {
            TokenMask::Packed(mask)
        } else if data.padding_mask {
            TokenMask::Padded(mask)
        } else {
            TokenMask::Full
        };
        Some(Self { ids, mask })
    }

    /// Rows without padding.
    pub(crate) const fn full(ids: &'a Tensor) -> Self {
        let mask = TokenMask::Full;
        Self { ids, mask }
    }
}

/// How many of `tokens` have a label: at most all that have one before them.
pub(crate) fn labelled(share: f64, ids: &Tensor) -> u64 {
    let (rows, tokens) = (ids.size(0), ids.size(1));
    let with_label = (share * rows.saturating_mul(tokens) as f64).round() as u64;
    with_label.clamp(1, rows.saturating_mul(tokens.saturating_sub(1)).max(1))
}
