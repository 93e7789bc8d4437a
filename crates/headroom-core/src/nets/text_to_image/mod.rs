//! Diffusion transformers whose image attends to a text of its own stream: PixArt, Sana; and Lumina-Image 2.0, which joins them
//! (diffusers/models/transformers/pixart_transformer_2d.py, sana_transformer.py, transformer_lumina2.py).

mod lumina2;
mod pixart;
mod sana;

use super::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("lumina2", lumina2::build),
    ("pixart", pixart::build),
    ("sana", sana::build),
];
