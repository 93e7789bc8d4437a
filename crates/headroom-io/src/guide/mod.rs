//! What the memory guides of real systems say, beside what is computed, and which of their knobs do anything.

mod claim;
mod dreams;
mod gsa;
mod peptrm;
mod prs_med;
mod rna_3e_ffi;
mod variants;

pub use claim::{Amount, Claim, Comparison, Evidence, Finding, Said, Verdict};
pub use variants::Variants;

/// A guide that people follow, claim by claim.
#[derive(Debug)]
pub struct Guide {
    /// The preset that is the guide's run.
    pub preset: &'static str,
    /// The document, its repository and its commit.
    pub document: &'static str,
    /// Changes to the system's code, for `git apply` at the guide's commit. They add flags and keys, and do nothing where
    /// none of these is given.
    pub patch: &'static str,
    pub claims: &'static [Claim],
    pub knobs: &'static [Knob],
}

/// A flag or a key of a system, and what it really does.
#[derive(Debug)]
pub struct Knob {
    /// The flag or key as it is written.
    pub flag: &'static str,
    pub wiring: Wiring,
    pub note: &'static str,
    /// How it is given once the guide's patch is applied; empty where the patch changes nothing about it.
    pub patched: &'static str,
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
    use headroom_scenario::presets;

    /// The lines of each guide that claims quote, as they stand there.
    const QUOTED: &[(&str, &str)] = &[
        ("dreams", include_str!("quoted/dreams.txt")),
        ("gsa-512m", include_str!("quoted/gsa-512m.txt")),
        ("rna-3e-ffi", include_str!("quoted/rna-3e-ffi.txt")),
        ("prs-med", include_str!("quoted/prs-med.txt")),
        ("peptrm", include_str!("quoted/peptrm.txt")),
    ];

    #[test]
    fn every_quotation_and_heading_is_in_its_guide() {
        for guide in all() {
            let (_, lines) = QUOTED.iter().find(|(id, _)| *id == guide.preset).unwrap();
            for claim in guide.claims {
                for quoted in [claim.quote, claim.section] {
                    let found = lines.lines().any(|line| line.contains(quoted));
                    assert!(found, "{}: not in the guide: {quoted}", guide.preset);
                }
            }
        }
    }

    #[test]
    fn knobs_say_what_they_do_and_bring_the_patch_they_need() {
        for guide in all() {
            assert!(presets::find(guide.preset).is_some(), "{}", guide.preset);
            for knob in guide.knobs {
                let sentence = knob.note.ends_with('.') && !knob.source.is_empty();
                assert!(sentence, "{}", knob.flag);
                let needs = knob.wiring == Wiring::NeedsPatch;
                assert!(
                    !needs || !knob.patched.is_empty(),
                    "{}: no patch",
                    knob.flag
                );
                // What it names is in the patch, or was there before.
                for word in knob.patched.split([' ', ',']) {
                    let path = |section| word.strip_prefix(section);
                    let flag = word
                        .strip_prefix("--")
                        .map(|flag| flag.trim_start_matches("no-"));
                    let Some(name) = flag.or(path("training.")).or(path("model.")) else {
                        continue;
                    };
                    let name = name.trim_end_matches(':');
                    let found = guide.patch.contains(name) || knob.flag.contains(name);
                    assert!(found, "{name} is not in the patch of {}", guide.preset);
                }
            }
        }
    }

    /// The verdicts of a guide's claims in their order, by the letter that they begin with: right, partly right, wrong, no
    /// effect, not computable here ("x").
    #[track_caller]
    fn check(preset: &str, expected: &str) {
        let guide = find(preset).unwrap();
        let variants = Variants::of(preset).unwrap();
        let letter = |claim: &Claim| match claim.examine(&variants).unwrap().verdict {
            Verdict::Right => 'r',
            Verdict::Partly => 'p',
            Verdict::Wrong => 'w',
            Verdict::NoEffect => 'n',
            Verdict::NotComputable => 'x',
        };
        let found: String = guide.claims.iter().map(letter).collect();
        assert_eq!(found, expected, "{preset}");
    }

    #[test]
    fn verdicts_follow_from_the_predictions() {
        check("dreams", "rnwnwwnnrrrnrrpwrnwnxxprx");
        check("gsa-512m", "wrwwpprwrwrwwrwwrnwnnrxxrxwwpr");
        check("rna-3e-ffi", "wrwnnnnxxrwrrnrwrpwn");
        check("prs-med", "wwrrxwxwwwrwrrxwxrwrrwwwwwrrwxxnrwwpwww");
        check("peptrm", "pwwwwwwwppprxrxxxrrwwrrxwrxwr");
    }
}
