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

/// `apply_rotary_pos_emb`. Phi-3 turns a leading part of each head and joins the rest to it, even where nothing is left.
pub fn apply(q: &Tensor, k: &Tensor, [cos, sin]: &[Tensor; 2], joined: bool) -> (Tensor, Tensor) {
    let tables = [cos.unsqueeze(1), sin.unsqueeze(1)];
    if !joined {
        let q = turned(q, &tables);
        return (q, turned(k, &tables));
    }
    let width = cos.size(-1);
    let rest = |x: &Tensor| x.narrow(-1, x.size(-1).saturating_sub(width));
    let (q_turning, q_rest) = (q.narrow(-1, width), rest(q));
    let (k_turning, k_rest) = (k.narrow(-1, width), rest(k));
    let join = |turning: &Tensor, rest: &Tensor| {
        turned(turning, &tables).then(|turned| Tensor::cat(turned, &[rest], -1))
    };
    let q = join(&q_turning, &q_rest);
    (q, join(&k_turning, &k_rest))
}

fn turned(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let straight = x.mul(cos);
    let crossed = rotate_half(x).then(|half| half.mul(sin));
    straight.add(&crossed)
}

fn rotate_half(x: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let first = x.narrow(-1, half);
    let second = x.narrow(-1, x.size(-1) - half);
    let negative = second.neg();
    Tensor::cat(&negative, &[&first], -1)
}
