//! `HiDreamAttnProcessor`: norms over all heads at once, rotations in fp32.

use super::Block;
use crate::nets::Cx;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// What the image and the text get, or one stream.
pub(super) fn attention(
    cx: &Cx,
    block: Block,
    x: &Tensor,
    text: Option<&Tensor>,
    rotary: &Tensor,
    mask: Option<&Tensor>,
) -> Vec<Tensor> {
    let width = block.width();
    let rows = |x: Tensor| x.view(&[x.size(0), x.size(1), block.heads, block.head_dim]);
    let project = |names: [&'static str; 5], x: &Tensor| {
        let [to_q, to_k, to_v, q_norm, k_norm] = names;
        let normed = |to: &'static str, norm: &'static str| {
            let made = cx.linear(to, x, width, true);
            cx.fused_rms_norm(norm, &made).to(x.dtype())
        };
        let query = normed(to_q, q_norm);
        let key = normed(to_k, k_norm);
        let value = cx.linear(to_v, x, width, true);
        [rows(query), rows(key), rows(value)]
    };
    let [query, mut key, value] = project(["to_q", "to_k", "to_v", "q_rms_norm", "k_rms_norm"], x);
    if let Some(mask) = mask {
        key = key.mul(&mask.unsqueeze(-1).unsqueeze(-1));
    }
    let other = text.map(|text| {
        let names = ["to_q_t", "to_k_t", "to_v_t", "q_rms_norm_t", "k_rms_norm_t"];
        project(names, text)
    });
    let [mut q, mut k, v] = match &other {
        Some([tq, tk, tv]) => [
            Tensor::cat(&query, &[tq], 1),
            Tensor::cat(&key, &[tk], 1),
            Tensor::cat(&value, &[tv], 1),
        ],
        None => [query.clone(), key.clone(), value.clone()],
    };
    [q, k] = rotated([&q, &k], rotary);
    let mut out = {
        let [q, k, v] = [&q, &k, &v].map(|x| x.transpose(1, 2));
        q.attention(&k, &v, &AttentionMask::None, 0.0)
            .transpose(1, 2)
    };
    out = out.reshape(&[out.size(0), out.size(1), width]);
    out = out.to(q.dtype());
    let outs = if let Some(text) = text {
        let parts = out.split(&[x.size(1), text.size(1)], 1);
        let names = ["to_out", "to_out_t"];
        let each = parts.iter().zip(names);
        each.map(|(part, name)| cx.linear(name, part, width, true))
            .collect()
    } else {
        vec![cx.linear("to_out", &out, width, true)]
    };
    drop((other, query, key, value, v, k, q));
    outs
}

/// `apply_rope`: each pair times a matrix of two by two.
fn rotated([q, k]: [&Tensor; 2], table: &Tensor) -> [Tensor; 2] {
    let wide = [q, k].map(|x| {
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last /= 2;
        }
        shape.extend([1, 2]);
        x.to(DType::F32).reshape(&shape)
    });
    let turned = [0, 1].map(|i: usize| {
        let x = &wide[i];
        let products = [(); 2].map(|()| table.select(-1).mul(&x.select(-1)));
        let [first, second] = &products;
        first.add(second)
    });
    let [first, second] = &turned;
    [
        first.reshape(q.shape()).to(q.dtype()),
        second.reshape(k.shape()).to(k.dtype()),
    ]
}
