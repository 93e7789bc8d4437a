//! Rotary embeddings by complex numbers.

use crate::tape::{DType, Tensor};

/// `apply_rotary_emb` of one of its two: `[B, S, H, D]` in fp32 as complex numbers, times the table, and back.
pub(super) fn rotated(x: &Tensor, freqs_cis: &Tensor) -> Tensor {
    let (tokens, half) = (x.size(1), x.size(-1) / 2);
    let mut shape = x.shape().to_vec();
    shape.pop();
    let complex = [&shape[..], &[half, 2]].concat();
    let whole = *x.shape();
    let table = freqs_cis.narrow(0, tokens).view(&[1, tokens, 1, half, 2]);
    x.to(DType::F32)
        .pipe(|wide| wide.view(&complex))
        .pipe(|wide| wide.mul(&table))
        .pipe(|product| product.view(&whole))
        .pipe(|product| product.to(x.dtype()))
}
