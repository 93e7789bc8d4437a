//! Diffusion transformers in which text and image attend to each other: FLUX and Stable Diffusion 3
//! (diffusers/models/transformers/transformer_flux.py, transformer_sd3.py).

mod flux;
mod joint;
mod sd3;

use super::unet::sinusoids;
use super::{Build, Cx, Output};
use crate::tape::{DType, Tensor};

pub(super) const FAMILIES: &[(&str, Build)] = &[("flux", flux::build), ("sd3", sd3::build)];

/// `TimestepEmbedding` or `PixArtAlphaTextProjection`: two linear layers.
fn mlp(cx: &Cx, name: &'static str, x: &Tensor, width: u64) -> Tensor {
    cx.within(name, |cx| {
        let mut x = cx.linear("linear_1", x, width, true);
        x = x.silu();
        cx.linear("linear_2", &x, width, true)
    })
}

/// `time_text_embed`: the time step, guidance where there is any, and the pooled text.
fn conditioning(cx: &Cx, steps: &[(&'static str, &Tensor)], pooled: &Tensor, width: u64) -> Tensor {
    cx.within("time_text_embed", |cx| {
        let mut sum: Option<Tensor> = None;
        for &(name, step) in steps {
            let waves = sinusoids(step, 256).to(pooled.dtype());
            let embedded = mlp(cx, name, &waves, width);
            sum = Some(match sum {
                Some(sum) => sum.add(&embedded),
                None => embedded,
            });
        }
        let text = mlp(cx, "text_embedder", pooled, width);
        sum.map_or_else(|| text.clone(), |sum| sum.add(&text))
    })
}

/// The mean squared error in fp32.
fn compared(cx: &Cx, predicted: Tensor, target: &Tensor) -> Output {
    let loss = cx.within("loss", |_| {
        let target = target.to(DType::F32);
        predicted
            .to(DType::F32)
            .then(|predicted| predicted.mse_loss(&target))
    });
    Output {
        loss,
        held: vec![predicted],
    }
}
