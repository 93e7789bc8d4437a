//! Diffusion transformers in which text and image attend to each other: FLUX and Stable Diffusion 3
//! (diffusers/models/transformers/transformer_flux.py, transformer_flux2.py, transformer_sd3.py), Qwen-Image, HunyuanVideo
//! and HunyuanImage, CogView4; and
//! Z-Image, where they are one stream; HiDream, with experts; AuraFlow.

mod auraflow;
mod chroma;
mod cogview4;
mod conditioning;
mod flux;
mod flux2;
mod hidream;
mod hunyuan;
mod joint;
mod qwen_image;
mod sd3;
mod z_image;

use super::Build;
use conditioning::conditioning;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("auraflow", auraflow::build),
    ("chroma", chroma::build),
    ("cogview4", cogview4::build),
    ("flux", flux::build),
    ("flux2", flux2::build),
    ("hidream", hidream::build),
    ("hunyuan_image", hunyuan::picture),
    ("hunyuan_video", hunyuan::build),
    ("hunyuan_video15", hunyuan::video15),
    ("qwen_image", qwen_image::build),
    ("sd3", sd3::build),
    ("z_image", z_image::build),
];
