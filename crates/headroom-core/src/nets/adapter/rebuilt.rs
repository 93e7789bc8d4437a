//! Adapters that compute a matrix as large as the layer's weight from that weight in each forward: GLoRA, PEANuT and FRoD (a directory
//! of peft/tuners each).

use super::vector;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::Lora;

/// `GloraLinear.forward` with its defaults: the weight times one product of two matrices, plus another.
pub(crate) fn scaled_and_shifted(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let path = |cx: &Cx, name, [rows, columns]: [u64; 2]| {
        cx.module(name, |cx| {
            let down = vector(cx, "Xd", &[rows, lora.rank], lora);
            let up = vector(cx, "Xu", &[lora.rank, columns], lora);
            (down, up)
        })
    };
    let weight = cx.param("weight", [outputs, inputs]).data.clone();
    let product = |(down, up): (Tensor, Tensor)| {
        let product = down.matmul_by(&up);
        product.to(weight.dtype())
    };
    let a = product(path(cx, "glora_A", [outputs, inputs]));
    let b = product(path(cx, "glora_B", [outputs, inputs]));
    // The other three change a bias: zeros for layers without one, as those that are adapted mostly are.
    for (name, width) in [
        ("glora_C", inputs),
        ("glora_D", outputs),
        ("glora_E", outputs),
    ] {
        cx.module(name, |cx| cx.buffer("zeros", [width], cx.env.weights));
    }
    let both = weight
        .mul(&a)
        .pipe(|scaled| weight.add(scaled))
        .pipe(|sum| sum.add(&b));
    let adapted = x.linear(&both, None);
    let dtype = y.dtype();
    let sum = y.add(&adapted);
    let twice = y.mul_scalar();
    let result = sum.sub(&twice);
    drop((a, b, both, adapted, sum, twice));
    result.to(dtype)
}

/// `Linear.forward` of PEANuT without inner layers (`depth=0`): a small network reads the weight and writes its update.
pub(crate) fn from_weight(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let a = vector(cx, "peanut_A", &[lora.rank, outputs], lora);
    let b = vector(cx, "peanut_B", &[outputs, lora.rank], lora);
    let base = cx.param("weight", [outputs, inputs]).data.clone();
    let wide = base.transpose(0, 1).to(a.dtype());
    let hidden = wide.matmul_by(&a.transpose(0, 1)).pipe(Tensor::relu);
    drop(wide);
    let delta = hidden
        .pipe(|hidden| hidden.linear(&b, None))
        .pipe(Tensor::mul_scalar);
    let x_wide = x.to(delta.dtype());
    let update = x_wide.matmul_by(&delta);
    drop(x_wide);
    let dtype = y.dtype();
    let update = update.to(dtype);
    let sum = y.pipe(|y| y.add(&update));
    drop((update, delta));
    sum
}

/// Of the square of a layer's inputs, the share that is learned besides its diagonal (`sparse_rate`), in percent.
const SPARSE_PERCENT: u64 = 1;

/// `Linear.forward` of FRoD: the layer's weight is replaced by a decomposition, of which one factor is shared by all layers of the same
/// name. The layer's own product is not taken.
pub(crate) fn decomposed_in_name(
    cx: &Cx,
    name: &str,
    x: &Tensor,
    y: Tensor,
    lora: &Lora,
) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let given = x.dtype();
    let entries = (inputs.saturating_mul(inputs) / 100)
        .saturating_mul(SPARSE_PERCENT)
        .max(1);
    drop(y);
    let values = vector(cx, "frod_lambda_s_values", &[entries], lora);
    let diagonal = vector(cx, "frod_lambda_l", &[inputs], lora);
    let u = cx.buffer("frod_U", [outputs, inputs], cx.env.weights);
    let (v, indices) = cx.root().module_named(name, |cx| {
        cx.buffer("frod_s_size", [2], DType::I64);
        (
            cx.buffer("frod_V", [inputs, inputs], cx.env.weights),
            cx.buffer("frod_s_indices", [2, entries], DType::I64),
        )
    });
    let [values, diagonal] = [values, diagonal].map(|learned| learned.to(given));
    // `coalesce` sorts the entries and adds equal ones.
    let sparse = {
        let sorted = indices.constant("coalesce", indices.shape(), DType::I64);
        let sum = values.mul_scalar();
        drop(sorted);
        sum
    };
    let dropped = x.dropout(cx.rate(lora.dropout));
    let low = dropped.matmul_by(&v);
    let dense = sparse.scattered_into("to_dense", &[inputs, inputs]);
    let off_diagonal = low.matmul_by(&dense.transpose(0, 1));
    let on_diagonal = low.mul(&diagonal);
    let both = off_diagonal.add(&on_diagonal);
    let result = both.linear(&u, None);
    drop((off_diagonal, on_diagonal, both, dense, sparse, low, dropped));
    result
}
