//! DreaMS: the guide of a fork that fine-tunes it to fingerprints.

mod claims;
mod knobs;

use super::Guide;

pub(super) const GUIDE: Guide = Guide {
    preset: "dreams",
    document: "MEMORY_OPTIMIZATION_GUIDE.md of maxvdboom/DreaMS at 757a414",
    patch: include_str!("../patches/dreams.diff"),
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};
