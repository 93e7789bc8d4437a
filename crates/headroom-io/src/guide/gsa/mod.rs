//! Gated Sparse Attention: the guide to its "512M" pre-training on four cards of 44 GB.

mod claims;
mod knobs;

use super::Guide;

pub(super) const GUIDE: Guide = Guide {
    preset: "gsa-512m",
    document: "docs/MEMORY_OPTIMIZATION.md of alfredcs/Gated-Sparse-Attention at b23ccad",
    patch: include_str!("../patches/gsa-512m.diff"),
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};
