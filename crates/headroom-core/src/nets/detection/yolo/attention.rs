//! Attention over the places of the coarsest map (ultralytics/nn/modules/block.py: `Attention`, `PSABlock`, `C2PSA`).

use super::blocks::Unit;
use super::joined;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;

/// `C2PSA`: half of the channels go through attention.
pub(super) fn split(cx: &Cx, x: &Tensor, count: usize) -> Tensor {
    let half = x.size(1) / 2;
    let mut parts = Unit::new(2 * half, 1)
        .run(cx, "cv1", x)
        .pipe(|both| both.split(&[half, half], 1));
    for i in 0..count {
        if let Some(last) = parts.last_mut() {
            let next = cx.module("m", |cx| cx.module(index_name(i), |cx| block(cx, last)));
            *last = next;
        }
    }
    let all = joined(&parts, 1, x);
    Unit::new(x.size(1), 1).run(cx, "cv2", &all)
}

/// `PSABlock`.
pub(super) fn block(cx: &Cx, x: &Tensor) -> Tensor {
    let channels = x.size(1);
    let x = cx.module("attn", |cx| attention(cx, x)).pipe(|y| x.add(y));
    let y = cx.module("ffn", |cx| {
        Unit::new(2 * channels, 1)
            .run(cx, "0", &x)
            .pipe(|y| Unit::new(channels, 1).linear().run(cx, "1", y))
    });
    x.add(&y)
}

/// `Attention`: heads of 64 channels whose queries and keys are half as wide.
fn attention(cx: &Cx, x: &Tensor) -> Tensor {
    let [batch, channels, height, width] = [0, 1, 2, 3].map(|axis| x.size(axis));
    let heads = (channels / 64).max(1);
    let places = height.saturating_mul(width);
    let each = channels / heads;
    let key = each / 2;
    let mixed = Unit::new(channels + 2 * key * heads, 1)
        .linear()
        .run(cx, "qkv", x)
        .pipe(|all| all.view(&[batch, heads, 2 * key + each, places]));
    let parts = mixed.split(&[key, key, each], 2);
    let [q, k, v] = &parts[..] else {
        return x.clone();
    };
    let shares = {
        let scores = q.mul_scalar().transpose(-2, -1).matmul(k);
        scores.pipe(|scores| scores.softmax(None))
    };
    let seen = v
        .matmul(&shares.transpose(-2, -1))
        .view(&[batch, channels, height, width]);
    let around = v.reshape(&[batch, channels, height, width]).pipe(|v| {
        Unit::new(channels, 3)
            .grouped(channels)
            .linear()
            .run(cx, "pe", v)
    });
    let sum = seen.add(&around);
    drop((seen, around));
    Unit::new(channels, 1).linear().run(cx, "proj", &sum)
}
