//! StableAdamW of torch-optimi, with what it chooses by itself: Triton's kernels, and Kahan summation in 16 bits.

use super::lists::like;
use crate::tape::{DType, Param, Tape, Tensor};

/// `_init_state` of optimi/stableadamw.py: two moments and two scalars; 16-bit weights have a compensation too, and
/// others a one-byte placeholder.
pub(crate) fn states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let dtype = param.data.dtype();
    let moments = [like(param), like(param)];
    let eps_sq = tape.empty("eps_sq", [0; 0], dtype);
    let compensation = if dtype.is_half() {
        like(param)
    } else {
        tape.empty("kahan_comp", [1], DType::U8)
    };
    let mean_square = tape.empty("mean_square", [1], DType::F32);
    let mut states = Vec::from(moments);
    states.extend([eps_sq, compensation, mean_square]);
    states
}
