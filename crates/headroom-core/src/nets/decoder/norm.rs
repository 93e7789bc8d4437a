//! The norms of decoders.

use super::super::Cx;
use super::Decoder;
use super::family::{Norm, Placement};
use crate::tape::{DType, Tensor};
use headroom_scenario::Kernels;

impl Decoder {
    pub(super) fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        let weight = |cx: &Cx| cx.param("weight", [x.size(-1)]).tensor();
        match self.family.norms.kind {
            Norm::Llama => cx.rms_norm(name, x),
            Norm::Gemma if cx.env.training.kernels == Kernels::Liger => {
                // Where norms stand behind sublayers too, Liger writes their gradients apart.
                let in_place = self.family.norms.placement != Placement::PreAndPost;
                cx.module(name, |cx| x.rms_norm_liger_in(&weight(cx), in_place))
            }
            Norm::Gemma => cx.module(name, |cx| gemma(x, &weight(cx))),
            Norm::Gemma4 => cx.module(name, |cx| gemma4(x, Some(&weight(cx)))),
            Norm::Olmo2 => cx.module(name, |cx| olmo2(x, &weight(cx), false)),
            Norm::NemotronH => cx.module(name, |cx| olmo2(x, &weight(cx), true)),
            Norm::Layer => cx.layer_norm(name, x),
            Norm::Unweighted => {
                let wide = x.to(DType::F32);
                wide.pipe(|wide| wide.layer_norm(None, None)).to(x.dtype())
            }
            Norm::Cohere => cx.module(name, |cx| cohere(x, &weight(cx))),
            Norm::LayerUnbiased => cx.module(name, |cx| x.layer_norm(Some(&weight(cx)), None)),
        }
    }
}

/// `Gemma2RMSNorm.forward`.
pub(super) fn gemma(x: &Tensor, weight: &Tensor) -> Tensor {
    let wide = x.to(DType::F32);
    let scale = wide
        .pow()
        .pipe(|squares| squares.mean(&[-1]))
        .pipe(Tensor::add_scalar)
        .pipe(Tensor::rsqrt);
    let normed = wide.mul(&scale);
    drop((scale, wide));
    let factor = weight.to(DType::F32).pipe(Tensor::add_scalar);
    let mut output = normed.mul(&factor);
    drop((normed, factor));
    output = output.to(x.dtype());
    output
}

/// `Gemma4RMSNorm.forward`: a power in place of the root.
pub(super) fn gemma4(x: &Tensor, weight: Option<&Tensor>) -> Tensor {
    let wide = x.to(DType::F32);
    let mean = wide
        .pow()
        .pipe(|squares| squares.mean(&[-1]))
        .pipe(Tensor::add_scalar);
    let mut normed = mean.pow().pipe(|scale| wide.mul(scale));
    drop((mean, wide));
    if let Some(weight) = weight {
        normed = weight.to(DType::F32).pipe(|weight| normed.mul(weight));
    }
    normed.to(x.dtype())
}

/// `Olmo2RMSNorm.forward`, and `NemotronHRMSNorm.forward` with a copy of the weight.
fn olmo2(x: &Tensor, weight: &Tensor, copies: bool) -> Tensor {
    let mut hidden = x.to(DType::F32);
    let variance = hidden.pow().pipe(|squares| squares.mean(&[-1]));
    let scale = variance.add_scalar().pipe(Tensor::rsqrt);
    hidden = scale.pipe(|scale| hidden.mul(scale));
    let product = if copies {
        weight.to(DType::F32).pipe(|weight| weight.mul(&hidden))
    } else {
        weight.mul(&hidden)
    };
    product.pipe(|product| product.to(x.dtype()))
}

/// `CohereLayerNorm.forward`.
fn cohere(x: &Tensor, weight: &Tensor) -> Tensor {
    let mut hidden = x.to(DType::F32);
    let mean = hidden.mean(&[-1]);
    let variance = hidden
        .sub(&mean)
        .pipe(Tensor::pow)
        .pipe(|squares| squares.mean(&[-1]));
    let centred = hidden.sub(&mean);
    let scale = variance.add_scalar().pipe(Tensor::rsqrt);
    hidden = centred.mul(&scale);
    drop((centred, scale));
    hidden = weight.to(DType::F32).pipe(|weight| weight.mul(&hidden));
    hidden.to(x.dtype())
}
