//! What is wrong with a scenario, said so that a person can put it right.

use std::fmt;

/// A field, the value it has, and what was expected instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field's path, such as `data.micro_batch`.
    pub field: String,
    pub value: String,
    /// What would have been accepted, as the end of "expected ...".
    pub expected: String,
}

impl Problem {
    pub fn new(
        field: impl Into<String>,
        value: impl AsRef<str>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            value: shortened(value.as_ref()),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            value,
            expected,
        } = self;
        write!(f, "{field} is `{value}`; expected {expected}")
    }
}

/// Text from outside, cut to what a message can hold, without control characters.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 80;
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = value.chars().take(LONGEST).map(shown).collect();
    if value.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}

/// The candidate that a misspelt word most likely means, if one is near.
pub(crate) fn nearest<'a>(
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
pub(crate) fn one_of(names: &[&str]) -> Option<String> {
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => (*last).to_string(),
        others => format!("{} or {last}", others.join(", ")),
    })
}

/// The number of single-character edits between two words (Levenshtein).
fn edits(word: &[char], other: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (above, letter) in other.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, mine) in word.iter().enumerate() {
            let kept = diagonal + usize::from(*mine != letter);
            diagonal = row[at + 1];
            row[at + 1] = kept.min(diagonal + 1).min(row[at] + 1);
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
