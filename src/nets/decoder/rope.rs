//! Rotary position embeddings.

use super::super::Cx;
use crate::tape::{DType, Tensor};

/// `LlamaRotaryEmbedding.forward`: cosines and sines `[1, S, D]` in `dtype`, from fp32 angles.
pub fn tables(cx: &Cx, positions: &Tensor, dim: u64, dtype: DType) -> [Tensor; 2] {
    cx.within("rotary_emb", |cx| {
        cx.tape.no_grad(|| {
            let frequencies = cx.buffer("inv_freq", [dim / 2], DType::F32);
            cx.buffer("original_inv_freq", [dim / 2], DType::F32);
            let angles = positions
                .unsqueeze(-1)
                .to(DType::F32)
                .then(|positions| positions.mul(&frequencies));
            let both = Tensor::cat(&angles, &[&angles], -1);
            let cos = both.cos().then(Tensor::scale);
            let sin = both.sin().then(Tensor::scale);
            [cos.to(dtype), sin.to(dtype)]
        })
    })
}

/// `apply_rotary_pos_emb` on one of queries and keys.
pub fn apply(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let (cos, sin) = (cos.unsqueeze(1), sin.unsqueeze(1));
    let straight = x.mul(&cos);
    let turned = rotate_half(x).then(|turned| turned.mul(&sin));
    straight.add(&turned)
}

fn rotate_half(x: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let first = x.narrow(-1, half);
    let second = x.narrow(-1, x.size(-1) - half);
    let negative = second.neg();
    Tensor::cat(&negative, &[&first], -1)
}
