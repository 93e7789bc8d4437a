//! Norms of diffusers (diffusers/models/normalization.py) that differ from PyTorch's own.

use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `RMSNorm`, an operation at a time; without a weight it returns to the type of its input.
pub(crate) fn rms_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let (mut hidden, _variance) = scaled(x);
        if weight.dtype().is_half() {
            hidden = hidden.to(weight.dtype());
        }
        hidden.mul(&weight)
    })
}

/// `MochiRMSNorm`: the weight is applied before the rows return to the type of the input.
pub(crate) fn rms_norm_in_fp32(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let (mut hidden, _variance) = scaled(x);
        hidden = hidden.mul(&weight);
        hidden.to(x.dtype())
    })
}

/// The same norm without a weight.
pub(crate) fn bare_rms_norm(x: &Tensor) -> Tensor {
    let (hidden, _variance) = scaled(x);
    hidden.to(x.dtype())
}

/// `x * torch.rsqrt(variance + eps)`, and the variance, which is held to the end.
fn scaled(x: &Tensor) -> (Tensor, Tensor) {
    let squares = x.to(DType::F32).pipe(Tensor::pow);
    let variance = squares.mean(&[-1]);
    drop(squares);
    let hidden = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| x.mul(scale));
    (hidden, variance)
}

/// `FP32LayerNorm` with a weight and a bias, of a tensor in fp32.
pub(crate) fn fp32_layer_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let affine =
            ["weight", "bias"].map(|part| cx.param(part, [x.size(-1)]).tensor().to(DType::F32));
        let [weight, bias] = &affine;
        x.to(DType::F32)
            .pipe(|wide| wide.layer_norm(Some(weight), Some(bias)))
            .to(x.dtype())
    })
}

/// `(norm(x.float()) * (1 + scale) + shift).type_as(x)`, with a norm that learns nothing.
pub(crate) fn fp32_modulated(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let normed = x.to(DType::F32).pipe(|wide| wide.layer_norm(None, None));
    let factor = scale.add_scalar();
    let product = normed.mul(&factor);
    drop((normed, factor));
    let sum = product.add(shift);
    drop(product);
    sum.to(x.dtype())
}
