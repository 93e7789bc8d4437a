//! Diffusion transformers of videos: Wan, LTX-Video, CogVideoX and Mochi
//! (diffusers/models/transformers/transformer_wan.py, transformer_ltx.py, cogvideox_transformer_3d.py, transformer_mochi.py).

mod cogvideox;
mod ltx;
mod mochi;
mod wan;

use super::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("cogvideox", cogvideox::build),
    ("ltx_video", ltx::build),
    ("mochi", mochi::build),
    ("wan", wan::build),
];
