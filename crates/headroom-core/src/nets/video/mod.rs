//! Diffusion transformers of videos: Wan, LTX-Video, LTX-2, CogVideoX and Mochi
//! (diffusers/models/transformers/transformer_wan.py, transformer_ltx.py, cogvideox_transformer_3d.py, transformer_mochi.py).

mod cogvideox;
mod ltx;
mod ltx2;
mod mochi;
mod wan;
mod wan_vace;

use super::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("cogvideox", cogvideox::build),
    ("ltx2", ltx2::build),
    ("ltx_video", ltx::build),
    ("mochi", mochi::build),
    ("wan", wan::build),
    ("wan_vace", wan::build),
];
