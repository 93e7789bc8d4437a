//! What the memory guides of real systems say, beside what is computed, and which of their knobs do anything.

mod dreams;
mod gsa;
mod lab;
mod leak;
mod peptrm;
mod prs_med;
mod rna_3e_ffi;

pub use lab::Lab;
pub use leak::Leak;

use crate::estimate::Unsupported;

/// A guide that people follow, claim by claim.
#[derive(Debug)]
pub struct Guide {
    /// The preset that is the guide's run.
    pub preset: &'static str,
    /// The document, its repository and its commit.
    pub document: &'static str,
    pub claims: &'static [Claim],
    pub knobs: &'static [Knob],
}

/// One claim of a guide: what it says, what is computed, and why they differ.
#[derive(Debug)]
pub struct Claim {
    /// Where in the guide.
    pub place: &'static str,
    /// What it says, in its own words, shortened.
    pub said: &'static str,
    /// What is computed, from estimates of the preset and its variants.
    pub computed: fn(&Lab) -> Result<String, Unsupported>,
    pub verdict: Verdict,
    /// Why they differ, or why the claim holds, in a sentence.
    pub why: &'static str,
    /// Where that can be read: a file of the system, a manual.
    pub source: &'static str,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Partly,
    Wrong,
    /// Often told, and without effect on what it is told of.
    Folklore,
}

impl Verdict {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Partly => "partly right",
            Self::Wrong => "wrong",
            Self::Folklore => "folklore",
        }
    }
}

/// A flag or a key of a system, and what it really does.
#[derive(Debug)]
pub struct Knob {
    /// The flag or key as it is written.
    pub flag: &'static str,
    pub wiring: Wiring,
    pub note: &'static str,
    /// The change to the system's code that makes the knob work, as a unified diff; empty where none is needed.
    pub patch: &'static str,
    /// The file that was read.
    pub source: &'static str,
}

/// What a knob is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// It does what it says.
    Exists,
    /// It is accepted, and nothing reads it.
    Ignored,
    /// It is read, and replaced by another value.
    Clamped,
    /// Giving it ends the run, or spoils it.
    Breaks,
    /// There is no such knob yet.
    NeedsPatch,
}

impl Wiring {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Ignored => "ignored",
            Self::Clamped => "clamped",
            Self::Breaks => "breaks",
            Self::NeedsPatch => "needs a patch",
        }
    }
}

/// All guides, in the order of their presets.
pub fn all() -> &'static [&'static Guide] {
    GUIDES
}

/// The guide of a preset.
pub fn find(preset: &str) -> Option<&'static Guide> {
    all().iter().copied().find(|guide| guide.preset == preset)
}

const GUIDES: &[&Guide] = &[
    &dreams::GUIDE,
    &gsa::GUIDE,
    &rna_3e_ffi::GUIDE,
    &prs_med::GUIDE,
    &peptrm::GUIDE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::presets;

    #[test]
    fn every_claim_is_computed_and_says_where_it_stands() {
        for guide in all() {
            let lab = Lab::new(guide.preset).expect(guide.preset);
            assert!(presets::find(guide.preset).is_some(), "{}", guide.preset);
            for claim in guide.claims {
                let computed = (claim.computed)(&lab);
                assert!(
                    computed.as_ref().is_ok_and(|it| !it.is_empty()),
                    "{}: {}: {computed:?}",
                    guide.preset,
                    claim.said
                );
                for text in [claim.place, claim.said, claim.why, claim.source] {
                    assert!(!text.is_empty(), "{}: {}", guide.preset, claim.said);
                }
            }
            for knob in guide.knobs {
                assert!(
                    !knob.note.is_empty() && !knob.source.is_empty(),
                    "{}",
                    knob.flag
                );
                let needs = knob.wiring == Wiring::NeedsPatch;
                assert!(!needs || !knob.patch.is_empty(), "{}: no patch", knob.flag);
            }
        }
    }
}
