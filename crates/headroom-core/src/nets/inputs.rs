//! What every language model computes before its first layer: ids, positions, attention masks.

use super::Cx;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

/// Token ids, their labels and, where samples are padded, the padding mask.
pub(crate) fn token_ids_and_labels(cx: &Cx, data: &Data) -> Vec<Tensor> {
    let shape = [data.micro_batch, cx.tokens_of(data.sequence)];
    let mut all = vec![
        cx.for_first_stage(|| cx.tape.empty("input_ids", shape, DType::I64)),
        cx.for_last_stage(|| cx.tape.empty("labels", shape, DType::I64)),
    ];
    if data.padding_mask {
        all.push(cx.tape.empty("attention_mask", shape, DType::I64));
    }
    all
}

/// `position_ids`: `arange(s)`, offset by the cache's length.
pub(crate) fn positions(ids: &Tensor) -> Tensor {
    let s = ids.size(1);
    let from_zero = ids.constant("arange", &[s], DType::I64);
    let offset = from_zero.add_scalar();
    drop(from_zero);
    offset.unsqueeze(0)
}

/// The causal mask of transformers' masking_utils.py (`create_causal_mask`) for the attention in force.
pub(crate) fn causal_mask(
    cx: &Cx,
    ids: &Tensor,
    padding: Option<&Tensor>,
    dtype: DType,
) -> AttentionMask {
    windowed_mask(cx, ids, padding, dtype, None)
}

/// `create_sliding_window_causal_mask` for a window of this many tokens; without one, `create_causal_mask`.
pub(crate) fn windowed_mask(
    cx: &Cx,
    ids: &Tensor,
    padding: Option<&Tensor>,
    dtype: DType,
    window: Option<u64>,
) -> AttentionMask {
    let rules = MaskRules {
        probed: true,
        always: false,
    };
    mask(cx, ids, padding, dtype, window, rules)
}

/// How a model creates its mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskRules {
    /// `position_ids` are passed, so that they are searched for sequences packed into one row.
    pub probed: bool,
    /// A mask is made even where `is_causal` says the same (`allow_is_causal_skip=False`).
    pub always: bool,
}

/// A causal mask by these rules.
pub(crate) fn mask(
    cx: &Cx,
    ids: &Tensor,
    padding: Option<&Tensor>,
    dtype: DType,
    window: Option<u64>,
    rules: MaskRules,
) -> AttentionMask {
    let eager = cx.env.training.attention == Attention::Eager;
    // A window as long as the sequence masks nothing more, which only `sdpa_mask` takes into account.
    let needed = window.is_some_and(|window| ids.size(1) >= window);
    let padding = padding.map(|padding| padding.constant("to", padding.shape(), DType::Bool));
    if rules.probed && padding.is_none() && !cx.env.training.use_cache {
        packed_sequence_probe(ids);
    }
    if cx.env.training.attention == Attention::Flash2 {
        // The kernel knows windows, and padding is left out before it.
        return AttentionMask::Causal;
    }
    if !eager && !needed && !rules.always {
        let Some(padding) = &padding else {
            return AttentionMask::Causal;
        };
        all_true_probe(padding);
        all_true_probe(padding);
    }
    let mask = allowed(ids, padding.as_ref(), window.is_some());
    AttentionMask::Given(if eager {
        additive(&mask, ids.size(0), dtype)
    } else {
        mask.expand(&[ids.size(0), 1, ids.size(1), ids.size(1)])
    })
}

/// `sdpa_mask`: a Boolean `[B or 1, 1, S, S]` from index comparisons.
pub(super) fn allowed(ids: &Tensor, padding: Option<&Tensor>, windowed: bool) -> Tensor {
    let (b, s) = (ids.size(0), ids.size(1));
    let index = |n: u64| ids.constant("arange", &[n], DType::I64);
    let moved = || index(s).pipe(Tensor::add_scalar);
    let square = |op| ids.constant(op, &[1, 1, s, s], DType::Bool);
    let indices = (index(b), index(1), moved(), moved());
    let causal = || square("le");
    let within_window = || {
        let first = ids.constant("sub", &[1, 1, s, 1], DType::I64);
        let mask = square("gt");
        drop(first);
        mask
    };
    let not_padding = || read_rows(ids, DType::Bool);
    let both = |a: Tensor, other: &dyn Fn() -> Tensor, batch: u64| {
        let other = other();
        let joint = ids.constant("bitwise_and", &[batch, 1, s, s], DType::Bool);
        drop((a, other));
        joint
    };
    // `and_masks` starts from a single `True`.
    let one = || ids.constant("new_ones", &[0; 0], DType::Bool);
    let inner = || {
        if windowed {
            both(both(one(), &within_window, 1), &causal, 1)
        } else {
            causal()
        }
    };
    let mask = if padding.is_some() {
        both(both(one(), &inner, 1), &not_padding, b)
    } else {
        inner()
    };
    drop(indices);
    mask
}

/// `table[batch_idx, idx]` for a table `[B, S]` like the ids: each index is copied to the common shape, where it has not that
/// shape already.
pub(super) fn read_rows(ids: &Tensor, dtype: DType) -> Tensor {
    let (b, s) = (ids.size(0), ids.size(1));
    let index = || ids.constant("arange", &[b * s], DType::I64);
    let places = (index(), (b > 1).then(index));
    let rows = ids.constant("index", &[b, 1, 1, s], dtype);
    drop(places);
    rows
}

/// `eager_mask`: zeros where allowed, the least number elsewhere.
pub(super) fn additive(mask: &Tensor, batch: u64, dtype: DType) -> Tensor {
    let zero = mask.constant("tensor", &[0; 0], dtype);
    let least = mask.constant("tensor", &[0; 0], dtype);
    let shape = [batch, 1, mask.size(2), mask.size(3)];
    let out = mask.constant("where", &shape, dtype);
    drop((zero, least));
    out
}

/// `padding_mask.all()` as `sum() == numel`.
fn all_true_probe(padding: &Tensor) {
    let sum = padding.constant("sum", &[0; 0], DType::I64);
    padding
        .tape()
        .workspace("sum", padding.numel() * DType::I64.bytes());
    drop(padding.constant("eq", &[0; 0], DType::Bool));
    drop(sum);
}

/// The scratch memory of a running sum: a single row is scanned by cub, whose states of its tiles come to this for all rows
/// that were recorded; several rows are scanned without any.
pub(super) fn scan_scratch(rows: &Tensor) {
    if rows.size(0) == 1 {
        rows.tape().workspace("cumsum", 1280);
    }
}

/// The mask over a static cache's places, which is always made: a Boolean `[B, 1, S, room]`.
pub(crate) fn static_mask(ids: &Tensor, room: u64) -> AttentionMask {
    let (b, s) = (ids.size(0), ids.size(1));
    let one = ids.constant("le", &[1, 1, s, room], DType::Bool);
    let mask = ids.constant("bitwise_and", &[b, 1, s, room], DType::Bool);
    drop(one);
    AttentionMask::Given(mask)
}

/// The mask of samples that are adjacent in one row: Boolean `[1, 1, T, T]`, where the numbers of the samples that two
/// tokens belong to are compared (`packed_sequence_mask_function`).
pub(crate) fn packed_mask(cx: &Cx, ids: &Tensor) -> AttentionMask {
    packed_sequence_probe(ids);
    if cx.env.training.attention == Attention::Flash2 {
        return AttentionMask::Causal;
    }
    let (b, s) = (ids.size(0), ids.size(1));
    let square = |op| ids.constant(op, &[b, 1, s, s], DType::Bool);
    let causal = square("le");
    let rows = [DType::I64; 2].map(|dtype| read_rows(ids, dtype));
    let same = square("eq");
    drop(rows);
    let mask = square("bitwise_and");
    drop((causal, same));
    AttentionMask::Given(if cx.env.training.attention == Attention::Eager {
        additive(&mask, b, ids_type(cx))
    } else {
        mask
    })
}

/// The type of a bias that is added to scores: that of the hidden states.
fn ids_type(cx: &Cx) -> DType {
    cx.env.weights
}

/// `find_packed_sequence_indices`: whether positions start over somewhere.
pub(super) fn packed_sequence_probe(ids: &Tensor) {
    let (b, s) = (ids.size(0), ids.size(1));
    let first = ids.constant("sub", &[b, 1], DType::I64);
    let joined = ids.constant("cat", &[b, s + 1], DType::I64);
    let steps = ids.constant("sub", &[b, s], DType::I64);
    drop(joined);
    let starts = ids.constant("ne", &[b, s], DType::Bool);
    let sums = ids.constant("cumsum", &[b, s], DType::I64);
    let sixty_four_bits = ids.constant("cumsum", &[b, s], DType::I64);
    scan_scratch(ids);
    drop(sixty_four_bits);
    drop(starts);
    let last = ids.constant("eq", &[b], DType::Bool);
    drop(ids.constant("all", &[0; 0], DType::Bool));
    drop((last, sums, steps, first));
}
