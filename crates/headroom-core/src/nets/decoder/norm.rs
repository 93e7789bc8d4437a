//! The norms of decoders.

use super::super::Cx;
use super::Decoder;
use super::family::{Norm, Placement};
use crate::tape::{DType, Tensor};
use headroom_scenario::Kernels;

impl Decoder {
    pub(super) fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        self.norm_of_shape(cx, name, x, &[x.size(-1)])
    }

    /// The same with a weight of more than one dimension, where the kind of norm has such.
    pub(super) fn norm_of_shape(
        &self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        shape: &[u64],
    ) -> Tensor {
        let weight = |cx: &Cx| cx.param("weight", shape).tensor();
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
            Norm::LayerFromOne => cx.module(name, |cx| {
                let (weight, bias) = (weight(cx), cx.param("bias", [x.size(-1)]).tensor());
                layer_from_one(x, &weight, &bias)
            }),
            Norm::Cohere => cx.module(name, |cx| cohere(x, &weight(cx))),
            Norm::LayerUnbiased => cx.module(name, |cx| x.layer_norm(Some(&weight(cx)), None)),
        }
    }
}

/// `NemotronLayerNorm1P.forward`: autocast lowers its arguments and is off while it runs.
fn layer_from_one(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
    let tape = x.tape();
    let dtype = tape.autocast_dtype();
    let factor = weight.add_scalar();
    let all = [x, &factor, bias].map(|part| match dtype {
        Some(dtype) => part.to(dtype),
        None => part.clone(),
    });
    let [x, factor, bias] = &all;
    tape.autocast(None, || x.layer_norm(Some(factor), Some(bias)))
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

/// `Llama4TextL2Norm.forward`.
pub(super) fn by_length(x: &Tensor) -> Tensor {
    let wide = x.to(DType::F32);
    let scale = wide
        .pow()
        .pipe(|squares| squares.mean(&[-1]))
        .pipe(Tensor::add_scalar)
        .pipe(Tensor::rsqrt);
    wide.mul(&scale).pipe(|normed| normed.to(x.dtype()))
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
