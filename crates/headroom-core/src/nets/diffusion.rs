//! Modules of diffusers that its U-Nets and its transformers share (diffusers/models/{embeddings,normalization,attention}.py),
//! and the loss of their training scripts.

use super::{Cx, Output};
use crate::tape::{DType, Tensor};

/// The mean squared error in fp32, with the prediction as what the model returns.
pub(crate) fn mse_output(cx: &Cx, predicted: Tensor, target: &Tensor) -> Output {
    let loss = cx.module("loss", |_| {
        let target = target.to(DType::F32);
        predicted
            .to(DType::F32)
            .pipe(|predicted| predicted.mse_loss(&target))
    });
    Output {
        loss,
        held: vec![predicted],
    }
}

/// `get_timestep_embedding` with `flip_sin_to_cos`.
pub(crate) fn sinusoids(timesteps: &Tensor, width: u64) -> Tensor {
    let half = width / 2;
    let mut exponent = timesteps.constant("arange", &[half], DType::F32);
    exponent = exponent.mul_scalar();
    exponent = exponent.mul_scalar();
    let mut emb = exponent.exp();
    emb = timesteps
        .to(DType::F32)
        .unsqueeze(1)
        .pipe(|steps| emb.unsqueeze(0).pipe(|row| steps.mul(row)));
    emb = emb.mul_scalar();
    emb = {
        let sine = emb.sin();
        let cosine = emb.cos();
        Tensor::cat(&sine, &[&cosine], -1)
    };
    let (sine, cosine) = (emb.narrow(-1, half), emb.narrow(-1, width - half));
    Tensor::cat(&cosine, &[&sine], -1)
}

/// `TimestepEmbedding`, `PixArtAlphaTextProjection`: two linear layers.
pub(crate) fn timestep_embedding(cx: &Cx, name: &'static str, x: &Tensor, width: u64) -> Tensor {
    cx.module(name, |cx| {
        let mut x = cx.linear("linear_1", x, width, true);
        x = x.silu();
        cx.linear("linear_2", &x, width, true)
    })
}

/// The linear layer of `AdaLayerNormZero` and its like: as many shifts, scales and gates.
pub(crate) fn modulation(cx: &Cx, name: &'static str, emb: &Tensor, parts: u64) -> Vec<Tensor> {
    let width = emb.size(-1);
    emb.silu()
        .pipe(|x| cx.linear(name, x, parts * width, true))
        .chunk(parts, 1)
}

/// `norm(x) * (1 + scale[:, None]) + shift[:, None]`, with a norm that learns nothing.
pub(crate) fn modulated_norm(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    modulate(&x.layer_norm(None, None), scale, shift)
}

/// `x * (1 + scale[:, None]) + shift[:, None]`.
pub(crate) fn modulate(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let scaled = scale.unsqueeze(1).add_scalar().pipe(|factor| x.mul(factor));
    scaled.add(&shift.unsqueeze(1))
}

/// `FeedForward` with `gelu-approximate`.
pub(crate) fn feed_forward(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    cx.module(name, |cx| {
        cx.module("net", |cx| {
            let mut x = cx.module("0", |cx| cx.linear("proj", x, 4 * width, true));
            x = x.gelu();
            cx.linear("2", &x, width, true)
        })
    })
}

/// Rows of patches, `[B, side², patch² × channels]`, as an image.
pub(crate) fn unpatchify(rows: &Tensor, side: u64, patch: u64, channels: u64) -> Tensor {
    let n = rows.size(0);
    let mut image = rows.reshape(&[n, side, side, patch, patch, channels]);
    image = image.permute(&[0, 5, 1, 3, 2, 4]);
    image.reshape(&[n, channels, side * patch, side * patch])
}
