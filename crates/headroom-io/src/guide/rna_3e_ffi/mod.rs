//! RNA-3E-FFI: the guide that was written against running out of memory after some epochs.

mod claims;
mod knobs;

use super::Guide;

pub(super) const GUIDE: Guide = Guide {
    preset: "rna-3e-ffi",
    document: "MEMORY_OPTIMIZATION.md of SleepingLei/RNA-3E-FFI at 6ccd5a7",
    patch: include_str!("../patches/rna-3e-ffi.diff"),
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};
