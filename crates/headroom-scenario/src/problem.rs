//! `Problem`: what is wrong with a value. Typed, so that the command line and the page each word it themselves.

use std::fmt;

use super::settings::{self, SettingId, ValueType};
use headroom_catalog as catalog;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A name that does not exist.
    UnknownName {
        field: String,
        given: String,
        kind: NameKind,
        /// The names it most likely means, the likeliest first.
        near: Vec<String>,
        /// What there is instead, where nothing is near and the list is short.
        known: Vec<String>,
    },
    /// A value of the right type outside the setting's range.
    OutOfRange {
        id: SettingId,
        given: String,
        min: String,
        max: String,
    },
    /// A text that is no value of the setting's type.
    NotAccepted { id: SettingId, given: String },
    /// A setting that has no effect while another has its value.
    Conflict {
        id: SettingId,
        given: String,
        with: SettingId,
        value: String,
    },
    /// Any other value that cannot be used; `expected` ends the sentence "expected ...".
    Unexpected {
        field: String,
        given: String,
        expected: String,
    },
}

/// What an unknown name was to be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Setting,
    Gpu,
    Model,
    /// A model of the catalogue that a file of another program names in its own way.
    ImportedModel,
    /// An architecture that Headroom has a network for.
    Architecture,
    /// A linear layer of the scenario's model.
    Layer,
    /// A part of a parameter's path.
    Parameter,
    Dimension,
    /// A kind of layer in a declared network, and one of its fields.
    LayerKind,
    LayerField,
    Option,
    Command,
    Guide,
    /// What a command runs: a preset, a model or a file.
    Run,
}

impl NameKind {
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Setting | Self::LayerField => "a known field",
            Self::Gpu => "a known GPU",
            Self::Model => "a known model",
            Self::ImportedModel => "a model of the catalogue",
            Self::Architecture => "an architecture that Headroom has a network for",
            Self::Layer => "a layer of the model",
            Self::Parameter => "part of a parameter's path",
            Self::Dimension => "a dimension of this model",
            Self::LayerKind => "a known kind",
            Self::Option => "a known option",
            Self::Command => "a command",
            Self::Guide => "a preset with a guide",
            Self::Run => "a preset, a model, a file or -",
        }
    }

    /// What an unknown one is called, where the sentence needs no field: commands and options are no fields of anything.
    const fn unknown(self) -> Option<&'static str> {
        match self {
            Self::Command => Some("unknown command"),
            Self::Option => Some("unknown option"),
            Self::Run => Some("no preset, model or file has the name"),
            _ => None,
        }
    }

    /// Where the names are listed.
    const fn listed(self) -> &'static str {
        match self {
            Self::Setting => "`headroom schema` lists them",
            Self::Gpu => "`headroom catalog gpus` lists them (or set hardware.memory_mib)",
            Self::Model | Self::ImportedModel => "`headroom catalog models` lists them",
            Self::Option => "--help lists them",
            Self::Command => "`headroom help` lists them",
            Self::Run => "`headroom presets` and `headroom catalog models` list them",
            _ => "",
        }
    }
}

impl Problem {
    pub fn new(
        field: impl Into<String>,
        given: impl AsRef<str>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Unexpected {
            field: field.into(),
            given: shortened(given.as_ref()),
            expected: expected.into(),
        }
    }

    /// The problem of a name that is none of the known ones: the given one, or the field's own where no field has that name.
    /// GPUs, models and settings are looked up where they are listed.
    pub fn unknown_name<'a>(
        kind: NameKind,
        field: impl Into<String>,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        const MOST_LISTED: usize = 40;
        let field = field.into();
        let known: Vec<&str> = known.into_iter().collect();
        let near_to = |name: &str| nearest(name, known.iter().copied()).into_iter().collect();
        let near: Vec<&str> = match kind {
            NameKind::Setting => settings::near(&field),
            NameKind::LayerField => near_to(field.rsplit('.').next().unwrap_or(&field)),
            NameKind::Gpu => catalog::gpus_near(given),
            NameKind::Model | NameKind::ImportedModel => catalog::models_near(given),
            NameKind::Run => match nearest(given, known.iter().copied()) {
                Some(preset) => vec![preset],
                None => catalog::models_near(given),
            },
            _ => near_to(given),
        };
        let known = match kind {
            NameKind::Run | NameKind::Option | NameKind::Command => &[],
            // Any parameter shows what a path looks like.
            NameKind::Parameter => known.get(..1).unwrap_or_default(),
            _ => known.get(..MOST_LISTED).unwrap_or(&known),
        };
        let owned = |names: &[&str]| names.iter().copied().map(shortened).collect();
        Self::UnknownName {
            field,
            given: shortened(given),
            kind,
            near: owned(&near),
            known: if near.is_empty() {
                owned(known)
            } else {
                Vec::new()
            },
        }
    }

    /// A value that is none of a few words, where one of them is near.
    pub fn unknown_choice(field: impl Into<String>, given: &str, choices: &[&str]) -> Self {
        let near = nearest(given, choices.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Self::new(field, given, format!("one of {}{near}", choices.join(", ")))
    }

    /// The choice of a setting that a misspelt one most likely means.
    fn near_choice(&self) -> Option<&'static str> {
        match self {
            Self::NotAccepted { id, given } => match id.value_type {
                ValueType::Choice(choices) => {
                    nearest(given, choices.iter().map(|choice| choice.id))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The field's path, such as `data.micro_batch`, or the argument of a command.
    pub fn field(&self) -> &str {
        match self {
            Self::UnknownName { field, .. } | Self::Unexpected { field, .. } => field,
            Self::OutOfRange { id, .. }
            | Self::NotAccepted { id, .. }
            | Self::Conflict { id, .. } => id.path,
        }
    }

    pub fn given(&self) -> &str {
        match self {
            Self::UnknownName { given, .. }
            | Self::OutOfRange { given, .. }
            | Self::NotAccepted { given, .. }
            | Self::Conflict { given, .. }
            | Self::Unexpected { given, .. } => given,
        }
    }

    /// What would have been accepted, as the end of "expected ...".
    pub fn expected(&self) -> String {
        match self {
            Self::UnknownName {
                kind, near, known, ..
            } => {
                let noun = kind.noun();
                match (one_of(near), known.as_slice(), kind.listed()) {
                    (Some(near), ..) => format!("{noun}; did you mean {near}?"),
                    (None, [], "") => noun.into(),
                    (None, [], listed) => format!("{noun}; {listed}"),
                    (None, [example], _) => format!("{noun}, such as {example}"),
                    (None, known, _) => format!("{noun}: {}", known.join(", ")),
                }
            }
            Self::OutOfRange { id, .. } | Self::NotAccepted { id, .. } => id.expected(),
            Self::Conflict { with, value, .. } => format!("no value while {with} is {value}"),
            Self::Unexpected { expected, .. } => expected.clone(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, given, expected) = (self.field(), self.given(), self.expected());
        if let Self::UnknownName { kind, near, .. } = self
            && let Some(unknown) = kind.unknown()
        {
            return match one_of(near) {
                Some(near) => write!(f, "{unknown} `{given}`; did you mean {near}?"),
                None => write!(f, "{unknown} `{given}`; {}", kind.listed()),
            };
        }
        if given.is_empty() && field.starts_with("--") {
            return write!(f, "{field} is needed: {expected}");
        }
        write!(f, "{field} is `{given}`; expected {expected}")?;
        let near = self.near_choice();
        near.map_or(Ok(()), |near| write!(f, "; did you mean {near}?"))
    }
}

/// Text from outside, cut to what a message can hold, without control characters.
pub(super) fn shortened(value: &str) -> String {
    const LONGEST: usize = 80;
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = value.chars().take(LONGEST).map(shown).collect();
    if value.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}

/// The candidate that a misspelt word most likely means, if one is near.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).collect();
    candidates
        .map(|candidate| (edits(&word, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= 1 + candidate.len() / 5)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Names to choose from, as a sentence has them: `a, b or c`.
pub fn one_of<S: AsRef<str> + std::borrow::Borrow<str>>(names: &[S]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let last = last.as_ref();
    Some(match others {
        [] => last.to_string(),
        others => format!("{} or {last}", others.join(", ")),
    })
}

/// The number of single-character edits between two words; two neighbours that changed places are one (optimal string
/// alignment).
fn edits(word: &[char], other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (at_other, letter) in other.iter().enumerate() {
        let two_above = std::mem::replace(&mut above, row);
        row = vec![at_other + 1];
        for (at, mine) in word.iter().enumerate() {
            let kept = above[at] + usize::from(mine != letter);
            let mut fewest = kept.min(above[at + 1] + 1).min(row[at] + 1);
            if at > 0 && at_other > 0 && word[at - 1] == *letter && *mine == other[at_other - 1] {
                fewest = fewest.min(two_above[at - 1] + 1);
            }
            row.push(fewest);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        let check = |word, expected| {
            let names = ["data.micro_batch", "data.sequence", "training.ema"];
            assert_eq!(nearest(word, names.into_iter()), expected);
        };
        check("data.microbatch", Some("data.micro_batch"));
        check("data.seqeunce", Some("data.sequence"));
        // Letters that changed places, in a short name, are one slip.
        check("training.eam", Some("training.ema"));
        check("colour", None);
        check("", None);
    }

    #[test]
    fn a_message_is_short_and_printable() {
        let problem = Problem::new("model.id", "\u{1b}[31m".repeat(100), "a name");
        assert!(problem.to_string().chars().count() < 130);
        assert!(!problem.to_string().contains('\u{1b}'));
    }
}
