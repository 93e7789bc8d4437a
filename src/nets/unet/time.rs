//! The embedding of the time step, and of what else conditions the whole image.

use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `get_time_embed`, `time_embedding` and, for XL, `get_aug_embed`. The sinusoids come second: `forward` holds them.
pub fn embed(
    cx: &Cx,
    timestep: &Tensor,
    width: u64,
    added: &[Tensor],
    added_waves: u64,
    dtype: DType,
) -> [Tensor; 2] {
    let waves = sinusoids(timestep, width).to(dtype);
    let mut embedding = cx.within("time_embedding", |cx| mlp(cx, &waves, 4 * width));
    if let [pooled, sizes] = added {
        let flat = sizes.reshape(&[sizes.numel()]);
        let waves = sinusoids(&flat, added_waves);
        let waves = waves.reshape(&[sizes.size(0), added_waves * sizes.size(1)]);
        let joined = Tensor::cat(pooled, &[&waves], -1).to(dtype);
        let more = cx.within("add_embedding", |cx| mlp(cx, &joined, 4 * width));
        embedding = embedding.add(&more);
    }
    [embedding, waves]
}

/// `TimestepEmbedding`.
fn mlp(cx: &Cx, sample: &Tensor, width: u64) -> Tensor {
    let mut sample = cx.linear("linear_1", sample, width, true);
    sample = sample.silu();
    cx.linear("linear_2", &sample, width, true)
}

/// `get_timestep_embedding` with the cosines first.
pub fn sinusoids(steps: &Tensor, width: u64) -> Tensor {
    let half = width / 2;
    let row = |op| steps.constant(op, &[half], DType::F32);
    let mut exponent = row("arange");
    exponent = exponent.scale();
    exponent = exponent.scale();
    let mut waves = exponent.exp();
    waves = steps
        .to(DType::F32)
        .unsqueeze(1)
        .then(|steps| waves.unsqueeze(0).then(|row| steps.mul(row)));
    waves = waves.scale();
    waves = {
        let sine = waves.sin();
        let cosine = waves.cos();
        Tensor::cat(&sine, &[&cosine], -1)
    };
    let parts = [half, width - half].map(|n| waves.narrow(-1, n));
    Tensor::cat(&parts[1], &[&parts[0]], -1)
}
