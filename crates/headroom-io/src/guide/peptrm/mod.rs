//! pepTRM: the guide to a recursive model on a card of 24 GB.

mod claims;
mod knobs;

use super::Guide;

pub(super) const GUIDE: Guide = Guide {
    preset: "peptrm",
    document: "docs/memory_management.md of jasegehring/pepTRM at 143716f",
    patch: include_str!("../patches/peptrm.diff"),
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};
