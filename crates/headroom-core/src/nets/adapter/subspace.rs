//! Adapters that work in a subspace of the layer's outputs or of its weight: DEFT (peft/tuners/deft/layer.py) and PSOFT
//! (peft/tuners/psoft/layer.py).

use super::{updated, vector};
use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::Lora;

/// `DeftLinear.forward`, all of it in fp32: what the layer gives is taken out of a subspace and, unless it is `para`, something learned is
/// put in.
pub(crate) fn projected(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora, puts_in: bool) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let rank = lora.rank.min(outputs);
    let p = vector(cx, "deft_P", &[outputs, rank], lora);
    let r = puts_in.then(|| vector(cx, "deft_R", &[rank, inputs], lora));
    let given = x.dtype();
    let base = y.to(DType::F32);
    let wide = x.to(DType::F32);
    // `_project` of `relu`, the default.
    let kept = p.to(DType::F32);
    let right = kept.relu();
    let turned = kept.transpose(0, 1);
    let correction = base.matmul_by(&right).pipe(|low| low.matmul_by(&turned));
    let mut sum = base.sub(&correction);
    // All of these are variables of the forward, which live to its end.
    let mut held = Vec::new();
    if let Some(r) = r {
        let r = r.to(DType::F32).mul_scalar();
        let added = wide
            .dropout(cx.rate(lora.dropout))
            .pipe(|x| x.linear(&r, None))
            .pipe(|low| low.matmul_by(&turned));
        sum = sum.add(&added);
        held.push(r);
    }
    let result = sum.to(given);
    drop((sum, y, correction, base, wide, right, held));
    result
}

/// `Linear.forward` of PSOFT: a rotation of the weight's `rank` strongest directions, which are kept in fp32.
pub(crate) fn rotated_subspace(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let rank = lora.rank.min(inputs).min(outputs);
    let a = cx.buffer("_psoft_A_cache", [rank, inputs], DType::F32);
    let b = cx.buffer("_psoft_B_cache", [outputs, rank], DType::F32);
    let rotation = rotation(cx, rank, lora);
    // Variables of the forward, which live to its end.
    let wide = x.to(DType::F32).dropout(cx.rate(lora.dropout));
    let low = wide.matmul_by(&a.transpose(0, 1));
    let turned = low.matmul_by(&rotation.to(low.dtype()).transpose(0, 1));
    drop(rotation);
    let difference = turned.sub(&low);
    let delta = difference.pipe(|low| low.matmul_by(&b.transpose(0, 1)));
    let dtype = y.dtype();
    let result = updated(y, delta.mul_scalar(), dtype);
    drop((turned, low, wide, delta));
    result
}

/// `OrthLayer.get_matrix`: Cayley's transform of an upper triangle, scaled by rows and by columns.
fn rotation(cx: &Cx, size: u64, lora: &Lora) -> Tensor {
    cx.module("psoft_R", |cx| {
        let elements = size.saturating_mul(size.saturating_sub(1)) / 2;
        let weight = vector(cx, "weight", &[elements], lora);
        let rows = vector(cx, "vector_b", &[size], lora);
        let columns = vector(cx, "vector_a", &[size], lora);
        cx.buffer("rows", [elements], DType::I64);
        cx.buffer("cols", [elements], DType::I64);
        let skew = {
            let matrix = weight.scattered_into("index_put", &[size, size]);
            matrix.sub(&matrix.transpose(0, 1))
        };
        let dtype = skew.dtype();
        let identity = cx.tape.empty("eye", [size, size], dtype);
        let wide = skew.to(DType::F32);
        let (below, above) = (identity.sub(&wide), identity.add(&wide));
        // `linalg.solve` keeps its factors and its result.
        let solved = below.solve_triangular(&above);
        drop((below, above, wide, identity, skew));
        let scaled = rows
            .view(&[size, 1])
            .mul(&solved)
            .pipe(|turn| turn.mul(&columns.view(&[1, size])));
        drop(solved);
        scaled.to(dtype)
    })
}
