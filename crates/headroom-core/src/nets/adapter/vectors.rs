//! Adapters that learn vectors: IA3 (peft/tuners/ia3), VeRA (peft/tuners/vera), and MiSS, which sums shards of its input
//! (peft/tuners/miss).

use super::{adapter_type, updated, vector};
use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_base::units::RoundUp;
use headroom_scenario::Lora;

/// Whether IA3 scales the layer's input instead of its output (`feedforward_modules`): by default, the
/// known ones.
pub(crate) fn is_feed_forward(name: &str, lora: &Lora) -> bool {
    if !lora.feed_forward.is_empty() {
        let last = |path: &str| path.rsplit('.').next() == Some(name);
        return lora.feed_forward.iter().any(|path| last(path));
    }
    matches!(
        name,
        "down_proj" | "fc2" | "c_proj" | "wo" | "dense_4h_to_h"
    )
}

pub(crate) fn scaled_input(cx: &Cx, x: &Tensor, lora: &Lora) -> Tensor {
    let scale = vector(cx, "ia3_l", &[1, x.size(-1)], lora);
    let wide = x.to(adapter_type(cx, lora));
    let scaled = wide.mul(&scale.reshape(&[x.size(-1)]).mul_scalar());
    drop(wide);
    scaled.to(x.dtype())
}

pub(crate) fn scaled_output(cx: &Cx, y: Tensor, lora: &Lora) -> Tensor {
    let scale = vector(cx, "ia3_l", &[y.size(-1), 1], lora);
    let dtype = y.dtype();
    let scale = scale.reshape(&[y.size(-1)]).mul_scalar();
    let scaled = y.pipe(|y| y.mul(&scale));
    scaled.to(dtype)
}

/// `Linear.forward` of VeRA: two random matrices that all layers share, as large as the largest of them.
pub(crate) fn vera(cx: &Cx, name: &str, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let dtype = adapter_type(cx, lora);
    let [widest_out, widest_in] = cx.widest([outputs, inputs]);
    let root = cx.root();
    let shared_a = root.buffer("vera_A", [lora.rank, widest_in], dtype);
    let shared_b = root.buffer("vera_B", [widest_out, lora.rank], dtype);
    let b = vector(cx, "vera_lambda_b", &[outputs], lora);
    let d = vector(cx, "vera_lambda_d", &[lora.rank], lora);
    let _ = name;
    let given = x.dtype();
    let x = x.to(dtype).dropout(cx.rate(lora.dropout));
    let low = x.linear(&shared_a.narrow(1, inputs), None);
    drop(x);
    let scaled = d.mul(&low);
    drop(low);
    let wide = scaled.linear(&shared_b.narrow(0, outputs), None);
    drop(scaled);
    let update = b.mul(&wide);
    drop(wide);
    updated(y, update, given)
}

/// `MissLinear.forward`.
pub(crate) fn shards(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let block = vector(cx, "miss_block", &[lora.rank, y.size(-1)], lora);
    let inputs = x.size(-1).round_up(lora.rank.max(1));
    let given = x.dtype();
    let dims = x.shape();
    let last = dims.len().saturating_sub(1);
    let mut x = if inputs == x.size(-1) {
        x.clone()
    } else {
        x.pad_to(&dims.with(last, inputs)[..])
    };
    x = x.to(adapter_type(cx, lora));
    let shape = [&dims[..last], &[inputs / lora.rank.max(1), lora.rank]].concat();
    let sum = x
        .dropout(cx.rate(lora.dropout))
        .pipe(|x| x.reshape(&shape))
        .pipe(|x| x.sum(&[-2]))
        .pipe(|sum| sum.squeeze(-2));
    drop(x);
    let update = sum.matmul_by(&block);
    drop(sum);
    updated(y, update, given)
}

/// `MissLinear.forward` with `init_weights="bat"`: the layer runs with a weight in the adapter's type, which each forward changes
/// block by block (`get_delta_weight`); its own product is not taken, so `y` is what comes in its place.
pub(crate) fn blocks(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let rank = lora.rank.max(1);
    let [across, down] = [inputs / rank, outputs / rank];
    let block = vector(cx, "miss_block", &[down, rank, rank], lora);
    let base = cx.param("weight", [outputs, inputs]).data.clone();
    drop(y);
    let own = cx.tape.no_grad(|| base.cloned());
    let wide = own.to(block.dtype());
    let tiles = wide
        .view(&[down, rank, across, rank])
        .permute(&[2, 0, 1, 3]);
    let changed = tiles.matmul(&block).pipe(|product| product.add(&block));
    let delta = changed.permute(&[1, 2, 0, 3]).reshape(&[outputs, inputs]);
    drop((changed, tiles, wide));
    let weight = own.add(&delta);
    drop(own);
    let given = x.dtype();
    let x = x.to(weight.dtype());
    let result = x.linear(&weight, None);
    drop((x, weight, delta));
    result.to(given)
}
