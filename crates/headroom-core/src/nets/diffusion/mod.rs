//! Modules of diffusers that its U-Nets and its transformers share (diffusers/models/{embeddings,normalization,attention}.py),
//! and the loss of their training scripts.

mod latents;
mod norms;
mod rotary;
#[cfg(test)]
mod tests;

pub(crate) use latents::{Grid, Pixels, flow_matching, weighted_output};
pub(crate) use norms::{
    bare_rms_norm, fp32_layer_norm, fp32_modulated, rms_norm, rms_norm_in_fp32,
};
pub(crate) use rotary::{apply_rotary_emb, rotate_complex};

use super::{Cx, Output};
use crate::tape::{DType, Tensor};

/// Where a network's one list of blocks runs: checkpointed in any mode, and with as many blocks swapped as the run wants.
pub(crate) fn blocks(cx: &Cx) -> Cx {
    let swapped = cx.env.training.block_swap;
    cx.checkpointing_in_any_mode().swapping(swapped)
}

/// The same for double blocks and single ones, of which trainers swap half as many and twice as many
/// (`flux_models.py` of kohya-ss/sd-scripts, `hunyuan_model/models.py` of musubi-tuner with one more of the single ones).
pub(crate) fn double_and_single_blocks(cx: &Cx, more: u64) -> [Cx; 2] {
    let swapped = cx.env.training.block_swap;
    let double = swapped / 2;
    let single = 2 * (swapped - double);
    let single = if swapped == 0 { 0 } else { single + more };
    [double, single].map(|blocks| cx.checkpointing_in_any_mode().swapping(blocks))
}

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

/// `AdaLayerNormSingle`: six parts for all blocks, and the embedding of the time step they are made of, to which `more` may add.
pub(crate) fn ada_norm_single(
    cx: &Cx,
    name: &'static str,
    timestep: &Tensor,
    width: u64,
    dtype: DType,
    more: impl FnOnce(&Cx) -> Option<Tensor>,
) -> [Tensor; 2] {
    cx.module(name, |cx| {
        let embedded = cx.module("emb", |cx| {
            let waves = sinusoids(timestep, 256).to(dtype);
            let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
            match more(cx) {
                Some(more) => time.add(&more),
                None => time,
            }
        });
        let parts = embedded
            .silu()
            .pipe(|x| cx.linear("linear", x, 6 * width, true));
        [parts, embedded]
    })
}

/// `(1 - mask) * -10000`, a bias over the text's places.
pub(crate) fn text_bias(mask: &Tensor, dtype: DType) -> Tensor {
    let bias = mask.to(dtype).add_scalar().mul_scalar();
    bias.unsqueeze(1)
}

/// `x * (1 + scale) + shift`.
pub(crate) fn scaled_and_shifted(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let scaled = scale.add_scalar().pipe(|factor| x.mul(factor));
    scaled.add(shift)
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

/// `FeedForward` with `gelu-approximate`, four times as wide inside.
pub(crate) fn feed_forward(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    feed_forward_of(cx, name, x, x.size(-1).saturating_mul(4))
}

/// The same with a width of its own inside.
pub(crate) fn feed_forward_of(cx: &Cx, name: &'static str, x: &Tensor, inner: u64) -> Tensor {
    let width = x.size(-1);
    cx.module(name, |cx| {
        cx.module("net", |cx| {
            let mut x = cx.module("0", |cx| cx.linear("proj", x, inner, true));
            x = x.gelu();
            cx.linear("2", &x, width, true)
        })
    })
}

/// `PixArtAlphaTextProjection` with its own activation, the tanh form of GELU.
pub(crate) fn caption_projection(cx: &Cx, name: &'static str, x: &Tensor, width: u64) -> Tensor {
    cx.module(name, |cx| {
        let mut x = cx.linear("linear_1", x, width, true);
        x = x.gelu();
        cx.linear("linear_2", &x, width, true)
    })
}

/// Rows of patches, `[B, rows × columns, patch² × channels]`, as an image.
pub(crate) fn unpatchify(rows: &Tensor, grid: Grid, patch: u64, channels: u64) -> Tensor {
    let n = rows.size(0);
    let mut image = rows.reshape(&[n, grid.height, grid.width, patch, patch, channels]);
    image = image.permute(&[0, 5, 1, 3, 2, 4]);
    image.reshape(&[n, channels, grid.height * patch, grid.width * patch])
}
