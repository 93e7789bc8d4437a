//! Relatives of ViT in transformers whose blocks differ from its: BEiT and DINOv3; and the spectrogram transformer, whose blocks do
//! not.

mod ast;
mod beit;
mod dinov3;
mod plain;

pub(super) use plain::PlainLayer;

use super::net::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("ast", ast::build),
    ("beit_hf", beit::build),
    ("dinov3", dinov3::build),
];
