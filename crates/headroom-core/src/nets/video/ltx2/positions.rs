//! `LTX2AudioVideoRotaryPosEmbed`, and how queries and keys are turned by its tables.

use crate::nets::diffusion::apply_rotary_emb;
use crate::tape::{DType, Tensor};

/// Cosines and sines of rows for as many axes: of every pair over the whole width, or of halves of each head (`split`).
pub(super) fn rotary(rows: &Tensor, width: u64, axes: u64, heads: u64, split: bool) -> [Tensor; 2] {
    let (n, count) = (rows.size(0), rows.size(1));
    let make = |op, shape: &[u64]| rows.constant(op, shape, DType::F32);
    let each = width / (2 * axes);
    let angles = {
        let product = make("mul", &[n, count, axes, each]);
        let flat = make("flatten", &[n, count, axes * each]);
        drop(product);
        flat
    };
    let tables = ["cos", "sin"].map(|op| make(op, angles.shape()));
    drop(angles);
    if split {
        let half = width / 2;
        let tables = if axes * each == half {
            tables
        } else {
            tables.map(|table| {
                let padded = make("cat", &[n, count, half]);
                drop(table);
                padded
            })
        };
        return tables.map(|table| {
            table
                .view(&[n, count, heads, half / heads.max(1)])
                .transpose(1, 2)
        });
    }
    tables.map(|table| {
        let twice = make("repeat_interleave", &[n, count, 2 * axes * each]);
        drop(table);
        if 2 * axes * each == width {
            return twice;
        }
        make("cat", &[n, count, width])
    })
}

/// `apply_interleaved_rotary_emb` or `apply_split_rotary_emb`.
pub(super) fn turned(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    if cos.shape().len() == 3 {
        return apply_rotary_emb(x, cos, sin);
    }
    let (n, count, width) = (x.size(0), x.size(1), x.size(2));
    let (heads, half) = (cos.size(1), cos.size(3));
    let rows = x.view(&[n, count, heads, 2 * half]).transpose(1, 2);
    let wide = rows.reshape(&[n, heads, count, 2, half]).to(DType::F32);
    let cos = cos.unsqueeze(-2);
    let sin = sin.unsqueeze(-2);
    let mut out = wide.mul(&cos);
    // `addcmul_` into either half.
    for negates in [true, false] {
        let other = wide.narrow(-2, 1);
        let factor = if negates {
            sin.constant("neg", sin.shape(), DType::F32)
        } else {
            sin.clone()
        };
        let product = other.mul(&factor);
        out = out.put(&product);
    }
    out.reshape(&[n, heads, count, 2 * half])
        .transpose(1, 2)
        .reshape(&[n, count, width])
        .to(x.dtype())
}
