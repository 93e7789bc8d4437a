//! Checks the claims of real systems' memory guides against predictions, and which of their flags have an effect.
//!
//! Each guide's claims are a YAML file here; `Claim` and `Computation` say what its tags mean.

mod amount;
mod claim;
mod expression;
mod variants;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

pub use claim::{Claim, Finding, Verdict};
pub use variants::Variants;

/// A guide that people follow, claim by claim.
#[derive(Debug)]
pub struct Guide {
    /// The preset that is the guide's run.
    pub preset: &'static str,
    /// The document, its repository and its commit.
    pub document: &'static str,
    /// Changes to the system's code, for `git apply` at the guide's commit. They add flags and keys, and do nothing where
    /// they are not used.
    pub patch: &'static str,
    yaml: &'static str,
    /// Parsed when a claim or a knob is first looked at.
    parsed: OnceLock<Contents>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    /// Changes that several numbers name.
    #[serde(default)]
    variants: BTreeMap<String, String>,
    claims: Vec<Claim>,
    knobs: Vec<Knob>,
}

/// A flag or a key of a system, and what it really does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// The flag or key as it is written.
    pub flag: String,
    pub wiring: Wiring,
    pub note: String,
    /// How it is written once the guide's patch is applied; empty where the patch changes nothing about it.
    #[serde(default)]
    pub patched: String,
    /// The file that was read.
    pub source: String,
}

/// What a knob is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Guide {
    pub fn claims(&self) -> &[Claim] {
        &self.contents().claims
    }

    pub fn knobs(&self) -> &[Knob] {
        &self.contents().knobs
    }

    /// The guide's run and its variants.
    pub fn variants(&'static self) -> Option<Variants> {
        Variants::with_names(self.preset, &self.contents().variants)
    }

    fn contents(&self) -> &Contents {
        // A test holds that every file is read.
        self.parsed
            .get_or_init(|| serde_yaml::from_str(self.yaml).unwrap_or_default())
    }
}

/// All guides, in the order of their presets.
pub fn all() -> &'static [Guide] {
    &GUIDES
}

/// The guide of a preset.
pub fn find(preset: &str) -> Option<&'static Guide> {
    all().iter().find(|guide| guide.preset == preset)
}

/// A guide with the files of its preset's name.
macro_rules! guide {
    ($preset:literal, $document:literal) => {
        Guide {
            preset: $preset,
            document: $document,
            patch: include_str!(concat!("patches/", $preset, ".diff")),
            yaml: include_str!(concat!($preset, ".yaml")),
            parsed: OnceLock::new(),
        }
    };
}

static GUIDES: [Guide; 5] = [
    guide!(
        "dreams",
        "MEMORY_OPTIMIZATION_GUIDE.md of maxvdboom/DreaMS at 757a414"
    ),
    guide!(
        "gsa-512m",
        "docs/MEMORY_OPTIMIZATION.md of alfredcs/Gated-Sparse-Attention at b23ccad"
    ),
    guide!(
        "rna-3e-ffi",
        "MEMORY_OPTIMIZATION.md of SleepingLei/RNA-3E-FFI at 6ccd5a7"
    ),
    guide!(
        "prs-med",
        "MEMORY_OPTIMIZATION.md of seanhuvaya/prs_med_mmrs at a75d09a"
    ),
    guide!(
        "peptrm",
        "docs/memory_management.md of jasegehring/pepTRM at 143716f"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install;
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
    fn every_file_parses() {
        for guide in all() {
            let parsed: Result<Contents, _> = serde_yaml::from_str(guide.yaml);
            assert_eq!(
                parsed.map(|_| ()).map_err(|error| error.to_string()),
                Ok(())
            );
            for claim in guide.claims() {
                let computed = claim.not_computable.is_empty();
                assert_ne!(claim.numbers.is_empty(), computed, "{}", claim.quote);
            }
        }
    }

    #[test]
    fn every_quotation_and_heading_is_in_its_guide() {
        for guide in all() {
            let (_, lines) = QUOTED.iter().find(|(id, _)| *id == guide.preset).unwrap();
            for claim in guide.claims() {
                for quoted in [&claim.quote, &claim.section] {
                    let found = lines.lines().any(|line| line.contains(quoted));
                    assert!(found, "{}: not in the guide: {quoted}", guide.preset);
                }
            }
        }
    }

    #[test]
    fn what_knobs_name_is_in_their_patches() {
        install();
        for guide in all() {
            assert!(presets::find(guide.preset).is_some(), "{}", guide.preset);
            for knob in guide.knobs() {
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
        let variants = guide.variants().unwrap();
        let letter = |claim: &Claim| match claim.check(&variants).unwrap().verdict {
            Verdict::Right => 'r',
            Verdict::Partly => 'p',
            Verdict::Wrong => 'w',
            Verdict::NoEffect => 'n',
            Verdict::NotComputable => 'x',
        };
        let found: String = guide.claims().iter().map(letter).collect();
        assert_eq!(found, expected, "{preset}");
    }

    #[test]
    fn verdicts_follow_from_the_predictions() {
        install();
        check("dreams", "rnwnwwnnwnrnrwpwrnwnxxpwx");
        check("gsa-512m", "wrwwpprwrwrwwrwwrnwnnrxxrxwwpr");
        check("rna-3e-ffi", "wrwnnnnxxrwrrnrwrpwn");
        check("prs-med", "wwrrxwxwwwrwrrxwxrwrrwwwwwrrwxxnwwwpwww");
        check("peptrm", "pwwwwwrwppprxrxxxrrwwrpxwrxwr");
    }
}
