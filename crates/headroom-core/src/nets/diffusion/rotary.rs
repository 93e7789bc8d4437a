//! Rotary positions (`apply_rotary_emb` in diffusers/models/embeddings.py and its relatives).

use crate::tape::{DType, Tensor};

/// `apply_rotary_emb`, which rotates pairs of neighbours along the last dimension.
pub(crate) fn apply_rotary_emb(x: &Tensor, cosines: &Tensor, sines: &Tensor) -> Tensor {
    let mut pairs = x.shape().to_vec();
    if let Some(last) = pairs.last_mut() {
        *last /= 2;
    }
    pairs.push(2);
    let halves = x.reshape(&pairs).unbind_along(-1);
    let [real, imaginary] = &halves[..] else {
        return x.clone();
    };
    let rotated = imaginary
        .neg()
        .pipe(|negative| Tensor::stack(&[negative.clone(), real.clone()], -1));
    let Some(rotated) = rotated else {
        return x.clone();
    };
    let rotated = rotated.reshape(x.shape());
    let by_cos = x.to(DType::F32).pipe(|x| x.mul(cosines));
    let by_sin = rotated.to(DType::F32).pipe(|x| x.mul(sines));
    let sum = by_cos.add(&by_sin);
    drop((by_cos, by_sin));
    sum.to(x.dtype())
}

/// Pairs as complex numbers, times a table `[rows, pairs]` of them.
pub(crate) fn rotate_complex(x: &Tensor, table: &Tensor) -> Tensor {
    let wide = x.to(DType::F32).pipe(|wide| wide.mul_complex(table));
    wide.to(x.dtype())
}
