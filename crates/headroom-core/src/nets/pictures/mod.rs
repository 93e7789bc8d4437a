//! Relatives of ViT in transformers whose blocks differ from its: BEiT and DINOv3; the spectrogram transformer, whose blocks do
//! not; and those of clips, VideoMAE and V-JEPA 2.

mod ast;
mod beit;
mod clips;
mod dinov3;
mod plain;
mod videomae;
mod vjepa2;

pub(super) use plain::PlainLayer;

use super::net::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("ast", ast::build),
    ("beit_hf", beit::build),
    ("dinov3", dinov3::build),
    ("videomae", videomae::build),
    ("vjepa2", vjepa2::build),
];
