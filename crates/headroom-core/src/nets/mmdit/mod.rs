//! Diffusion transformers in which text and image attend to each other: FLUX and Stable Diffusion 3
//! (diffusers/models/transformers/transformer_flux.py, transformer_flux2.py, transformer_sd3.py).

mod flux;
mod flux2;
mod joint;
mod sd3;

use super::diffusion::{sinusoids, timestep_embedding};
use super::{Build, Cx};
use crate::tape::Tensor;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("flux", flux::build),
    ("flux2", flux2::build),
    ("sd3", sd3::build),
];

/// `CombinedTimestepGuidanceTextProjEmbeddings`: the time step, guidance where there is any, and the pooled text.
fn conditioning(cx: &Cx, steps: &[(&'static str, &Tensor)], pooled: &Tensor, width: u64) -> Tensor {
    cx.module("time_text_embed", |cx| {
        let mut sum: Option<Tensor> = None;
        for &(name, step) in steps {
            let waves = sinusoids(step, 256).to(pooled.dtype());
            let embedded = timestep_embedding(cx, name, &waves, width);
            sum = Some(match sum {
                Some(sum) => sum.add(&embedded),
                None => embedded,
            });
        }
        let text = timestep_embedding(cx, "text_embedder", pooled, width);
        sum.map_or_else(|| text.clone(), |sum| sum.add(&text))
    })
}
