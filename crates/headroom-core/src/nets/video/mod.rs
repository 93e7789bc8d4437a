//! Diffusion transformers of videos: Wan, LTX-Video and CogVideoX
//! (diffusers/models/transformers/transformer_wan.py, transformer_ltx.py, cogvideox_transformer_3d.py).

mod cogvideox;
mod ltx;
mod wan;

use super::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("cogvideox", cogvideox::build),
    ("ltx_video", ltx::build),
    ("wan", wan::build),
];
