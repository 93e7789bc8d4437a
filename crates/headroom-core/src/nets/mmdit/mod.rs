//! Diffusion transformers in which text and image attend to each other: FLUX and Stable Diffusion 3
//! (diffusers/models/transformers/transformer_flux.py, transformer_flux2.py, transformer_sd3.py).

mod conditioning;
mod flux;
mod flux2;
mod joint;
mod sd3;

use super::Build;
use conditioning::conditioning;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("flux", flux::build),
    ("flux2", flux2::build),
    ("sd3", sd3::build),
];
