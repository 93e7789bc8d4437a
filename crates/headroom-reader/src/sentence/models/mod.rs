//! The model: an id, a name, or what people say for one, possibly with its size elsewhere.

mod name;
mod size;

use std::ops::Range;

use super::atoms::{Gap, Sentence};
use crate::names::{Named, named};

pub(super) use size::{of_size, size_alone};

/// A model that a sentence names.
#[derive(Debug)]
pub(super) struct Model {
    /// What the draft looks up: an id of the catalogue, or the user's words.
    pub name: String,
    pub said: String,
    /// Whether the words leave the version or the part open.
    pub usual: bool,
    pub named: Named,
}

/// A model, and where it stands.
struct Found {
    model: Model,
    range: Range<usize>,
    /// Where its size stands, if that is elsewhere.
    size: Option<Range<usize>>,
}

impl Found {
    /// A model that is none of the catalogue's.
    fn unlisted(said: String, named: Named, range: Range<usize>) -> Self {
        let model = Model {
            name: said.clone(),
            said,
            usual: false,
            named,
        };
        Self {
            model,
            range,
            size: None,
        }
    }
}

/// Words that follow a name behind a space and say nothing more of its network.
const SUFFIXES: &[&str] = &[
    "instruct",
    "chat",
    "base",
    "it",
    "hf",
    "thinking",
    "reasoning",
    "model",
    "models",
    "checkpoint",
    "fp8",
    "gptq",
    "awq",
    "mxfp4",
    "gguf",
];

pub(super) fn read(sentence: &mut Sentence) -> Option<Model> {
    let found = id(sentence)
        .or_else(|| Some(size::with(sentence, name::find(sentence)?)))
        .or_else(|| size::apart(sentence))
        .or_else(|| size::unknown(sentence));
    let Found {
        mut model,
        range,
        size,
    } = found?;
    for range in [Some(range), size].into_iter().flatten() {
        let mut end = range.end;
        sentence.use_up(range);
        while sentence.gap(end) < Gap::Break
            && let Some(word) = sentence.free(end).filter(|word| SUFFIXES.contains(word))
        {
            if model.named.weights.is_none() && model.named.refused.is_none() {
                let more = named(&format!("{} {word}", model.said));
                model.named.weights = more.weights;
                model.named.refused = more.refused;
            }
            sentence.use_up(end..end + 1);
            end += 1;
        }
    }
    Some(model)
}

/// A word of the hub's form: `owner/name`, or an address.
fn id(sentence: &Sentence) -> Option<Found> {
    let mut start = 0;
    for word in sentence.text.split_whitespace() {
        let at = sentence.text.get(start..)?.find(word)? + start;
        start = at + word.len();
        let word = word
            .trim_matches(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '.' | '~'));
        let plain = word.trim_end_matches(['.', '/', ',']);
        let mut parts = plain.split('/');
        let (owner, rest) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let address = plain.contains("huggingface.co/") || plain.contains("hf.co/");
        let path = plain.starts_with(['/', '~', '.']) && plain.matches('/').count() > 1;
        let pair = owner.len() >= 2
            && rest.len() >= 3
            && owner.starts_with(|c: char| c.is_ascii_alphanumeric())
            && rest.contains(|c: char| c.is_ascii_digit() || c == '-')
            && !rest.starts_with(|c: char| c.is_ascii_digit());
        if !(address || path || pair) {
            continue;
        }
        let named = named(plain);
        if named.catalogue.is_none() && !address && !path && !plain.contains('-') {
            continue;
        }
        let from = sentence.atoms.iter().position(|atom| atom.start >= at)?;
        let to = sentence
            .atoms
            .iter()
            .rposition(|atom| atom.end <= at + word.len() + 2 && atom.start < start)?
            + 1;
        return Some(Found::unlisted(plain.into(), named, from..to));
    }
    None
}
