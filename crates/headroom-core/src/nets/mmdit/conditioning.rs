//! What blocks are conditioned on.

use super::super::Cx;
use super::super::diffusion::{sinusoids, timestep_embedding};
use crate::tape::Tensor;

/// `CombinedTimestepGuidanceTextProjEmbeddings`: the time step, guidance where there is any, and the pooled text.
pub(super) fn conditioning(
    cx: &Cx,
    steps: &[(&'static str, &Tensor)],
    pooled: &Tensor,
    width: u64,
) -> Tensor {
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
