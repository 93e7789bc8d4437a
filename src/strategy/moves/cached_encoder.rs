//! Compute what frozen encoders make once, and store it.

use super::{Cost, Group, Move, encoder, is_frozen, with};

pub const MOVE: Move = Move {
    id: "cached-features",
    title: "read what frozen encoders make from disk",
    group: Group::Cached,
    what: "Latents, text states or features of each sample are computed once and stored; a step reads them, and the encoders leave the card.",
    needs: "Encoders that are frozen and run in each step, as a VAE and text encoders of a diffusion model do (dimension `encoders=1`).",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: the encoders do not run, and loading a latent is quicker than decoding an image.",
    quality: "Equal for each sample as it was stored; random crops, flips and changes of text must be fixed when it is.",
    source: "diffusers examples/dreambooth (--cache_latents), examples/text_to_image (text embeddings computed before training)",
    caveat: "The disk holds what is stored, for each augmentation once.",
    code: "latents = vae.encode(images).latent_dist for each sample, saved; then del vae, text_encoder",
    apply: |s| {
        let stored = match encoder(s) {
            Some(part) => is_frozen(s, part) && s.model.dim("encoders").unwrap_or(1) > 0,
            None => s.model.network.is_none() && s.model.dim("encoders") > Some(0),
        };
        stored.then(|| {
            with(s, |it| {
                it.model.dims.insert("encoders".into(), 0);
            })
        })
    },
};
