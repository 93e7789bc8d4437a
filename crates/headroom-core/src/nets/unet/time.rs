//! The embedding of the time step, and of what else conditions the whole image.

use crate::nets::Cx;
use crate::nets::diffusion::{sinusoids, timestep_embedding};
use crate::tape::{DType, Tensor};

/// `get_time_embed`, `time_embedding` and, for XL, `get_aug_embed`. The sinusoids come second: `forward` holds them.
pub(crate) fn embed(
    cx: &Cx,
    timestep: &Tensor,
    width: u64,
    added: &[Tensor],
    added_waves: u64,
    dtype: DType,
) -> [Tensor; 2] {
    let waves = sinusoids(timestep, width).to(dtype);
    let mut embedding = timestep_embedding(cx, "time_embedding", &waves, 4 * width);
    if let [pooled, sizes] = added {
        let flat = sizes.reshape(&[sizes.numel()]);
        let waves = sinusoids(&flat, added_waves);
        let waves = waves.reshape(&[sizes.size(0), added_waves * sizes.size(1)]);
        let joined = Tensor::cat(pooled, &[&waves], -1).to(dtype);
        let more = timestep_embedding(cx, "add_embedding", &joined, 4 * width);
        embedding = embedding.add(&more);
    }
    [embedding, waves]
}
