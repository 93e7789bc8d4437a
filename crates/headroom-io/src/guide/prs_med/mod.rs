//! PRS-Med: the guide of a re-implementation, with four configurations and a quick start by the card's size.

mod claims;
mod knobs;

use super::Guide;

pub(super) const GUIDE: Guide = Guide {
    preset: "prs-med",
    document: "MEMORY_OPTIMIZATION.md of seanhuvaya/prs_med_mmrs at a75d09a",
    patch: include_str!("../patches/prs-med.diff"),
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};
