//! Masks in which the tokens of a block attend to each other whatever their order, as those of an image do
//! (`blockwise_overlay` in transformers' masking_utils.py).

use crate::nets::Cx;
use crate::nets::inputs::{additive, read_rows, scan_scratch};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

/// `get_block_sequence_ids_for_mask` of Gemma 3: the number of the image that a token belongs to, or -1.
pub(crate) fn image_blocks(types: &Tensor) -> Tensor {
    let (b, s) = (types.size(0), types.size(1));
    let make = |op, dtype| types.constant(op, &[b, s], dtype);
    let image = make("eq", DType::Bool);
    let before = types.constant("constant_pad_nd", &[b, s + 1], DType::Bool);
    let first = {
        let others = make("bitwise_not", DType::Bool);
        let first = make("bitwise_and", DType::Bool);
        drop(others);
        first
    };
    let small = make("to", DType::I32);
    let sums = make("cumsum", DType::I64);
    let wide = make("cumsum", DType::I64);
    scan_scratch(types);
    drop((wide, small));
    let groups = make("sub", DType::I64);
    drop(sums);
    let none = types.constant("scalar_tensor", &[0; 0], DType::I64);
    let blocks = make("where", DType::I64);
    drop((image, before, first, groups, none));
    blocks
}

/// `torch.where(token_type_ids == 0, 0, -1)` of PaliGemma: all tokens before the answer are one block.
pub(crate) fn prefix_blocks(types: &Tensor) -> Tensor {
    let prefix = types.constant("eq", types.shape(), DType::Bool);
    let scalar = || types.constant("scalar_tensor", &[0; 0], DType::I64);
    let (block, none) = (scalar(), scalar());
    let blocks = types.constant("where", types.shape(), DType::I64);
    drop((prefix, block, none));
    blocks
}

/// `create_causal_mask` with `block_sequence_ids`; with a window, as `create_masks_for_vision_model` has it.
pub(crate) fn blockwise_mask(
    cx: &Cx,
    blocks: &Tensor,
    padding: Option<&Tensor>,
    dtype: DType,
    windowed: bool,
) -> AttentionMask {
    let (b, s) = (blocks.size(0), blocks.size(1));
    let padding = padding.map(|padding| padding.constant("to", padding.shape(), DType::Bool));
    if cx.env.training.attention == Attention::Flash2 {
        return AttentionMask::Causal;
    }
    let mask = allowed(blocks, padding.as_ref(), windowed);
    AttentionMask::Given(if cx.env.training.attention == Attention::Eager {
        additive(&mask, b, dtype)
    } else {
        mask.expand(&[b, 1, s, s])
    })
}

/// A Boolean `[B, 1, S, S]`. Functions besides the causal one are mapped over positions (`torch.vmap`), so that their initial
/// values have one element for each.
fn allowed(blocks: &Tensor, padding: Option<&Tensor>, windowed: bool) -> Tensor {
    let (b, s) = (blocks.size(0), blocks.size(1));
    let index = |n: u64| blocks.constant("arange", &[n], DType::I64);
    let moved = || index(s).pipe(Tensor::add_scalar);
    let indices = (index(b), index(1), moved(), moved());
    let start = |op| {
        let shape: &[u64] = if windowed { &[s] } else { &[] };
        blocks.constant(op, shape, DType::Bool)
    };
    let square = |op, n| blocks.constant(op, &[n, 1, s, s], DType::Bool);
    let and = |a: Tensor, other: Tensor| {
        let joint = square("bitwise_and", b);
        drop((a, other));
        joint
    };
    let either = || {
        let none = start("new_zeros");
        let causal = square("le", 1);
        let before = square("bitwise_or", 1);
        drop((none, causal));
        let block_ids = [DType::I64; 2].map(|dtype| read_rows(blocks, dtype));
        let equal = square("eq", b);
        let inside = blocks.constant("ge", &[b, 1, s, 1], DType::Bool);
        let same = square("bitwise_and", b);
        drop((block_ids, equal, inside));
        let either = square("bitwise_or", b);
        drop((before, same));
        either
    };
    let inner = || {
        if !windowed {
            return either();
        }
        let allowed = and(start("new_ones"), either());
        let first = blocks.constant("sub", &[s], DType::I64);
        let near = square("gt", 1);
        drop(first);
        and(allowed, near)
    };
    let mask = match padding {
        Some(_) => {
            let allowed = and(start("new_ones"), inner());
            and(allowed, read_rows(blocks, DType::Bool))
        }
        None => inner(),
    };
    drop(indices);
    mask
}
