//! Precomputed outputs of frozen encoders.

use super::{Cost, Group, Move, Results, encoder, is_frozen, with};

pub const MOVE: Move = Move {
    id: "cached-features",
    title: "precompute the outputs of frozen encoders",
    group: Group::Cached,
    what: "Latents, text embeddings or features are computed once per sample and stored; training steps load them, and the encoders leave the GPU.",
    needs: "Frozen encoders that run in each step, such as the VAE and text encoders of a diffusion model (dimension `encoders=1`).",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: true,
    speed: "Faster: the encoders do not run, and reading a latent is quicker than decoding an image.",
    quality: "Identical for the samples as stored; random crops, flips and caption changes are fixed at that time.",
    source: "diffusers examples/dreambooth (--cache_latents), examples/text_to_image (text embeddings computed before training)",
    caveat: "Needs disk space for every sample and each of its augmentations.",
    code: "latents = vae.encode(images).latent_dist for each sample, saved; then del vae, text_encoder",
    apply: |run| {
        let stored = match encoder(run) {
            Some(part) => is_frozen(run, part) && run.model.dim("encoders").unwrap_or(1) > 0,
            None => run.model.network.is_none() && run.model.dim("encoders") > Some(0),
        };
        stored.then(|| {
            with(run, |changed| {
                changed.model.dims.insert("encoders".into(), 0);
            })
        })
    },
};
