//! A model's size that stands apart from its name, and models that the catalogue has not.

use std::collections::BTreeSet;

use headroom_catalog::{self as catalog, Meant, ModelCategory, ModelEntry};

use super::super::atoms::{Atom, Gap, Sentence};
use super::super::vocabulary::is_alone;
use super::name::{DERIVATIVES, closed, derivative, may_begin, meant, text};
use super::{Found, Model};
use crate::names::{Named, named};

/// Words of another network than the family's own.
const OTHERS: &[&str] = &[
    "vision",
    "vl",
    "audio",
    "omni",
    "embedding",
    "embeddings",
    "embed",
    "reranker",
    "moe",
    "guard",
    "image",
    "video",
    "distill",
    "distilled",
    "math",
    "multimodal",
    "next",
    "mini",
    "nano",
    "scout",
    "maverick",
    "coder",
    "code",
];

/// A parameter count: `70b`, `1.5 B`, `350M`.
fn parameters(sentence: &Sentence, at: usize) -> Option<usize> {
    sentence
        .free(at)
        .filter(|_| sentence.get(at).is_some_and(|atom| atom.number().is_some()))?;
    let unit = sentence.free(at + 1)?;
    let end = at + 2;
    (matches!(unit, "b" | "m" | "billion")
        && sentence.gap(at + 1) <= Gap::Joined
        && sentence.gap(end) != Gap::Glued)
        .then_some(end)
}

/// A size without a name, which is no model: `a 7B model`.
pub(in crate::sentence) fn size_alone(sentence: &mut Sentence) -> Option<String> {
    let found = (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)));
    let (at, end) = found?;
    sentence.use_up(at..end);
    Some(sentence.words(at..end))
}

/// The most used language models of about this size, such as `7B`: one of each family.
pub(in crate::sentence) fn of_size(size: &str) -> Vec<&'static str> {
    const MOST: usize = 3;
    let digits: String = size
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let unit = match size.trim_end().chars().last() {
        Some('m' | 'M') => 1e6,
        _ => 1e9,
    };
    let Ok(wanted) = digits.parse::<f64>().map(|number| number * unit) else {
        return Vec::new();
    };
    let is_near = |entry: &&&ModelEntry| (entry.parameters as f64 / wanted - 1.0).abs() < 0.12;
    let mut ranks = BTreeSet::new();
    let all = catalog::models_by_use();
    let near = all
        .iter()
        .filter(|entry| entry.category == ModelCategory::Decoders)
        .filter(is_near);
    let first_of_family = near.filter(|entry| ranks.insert(catalog::usage_rank(entry)));
    first_of_family.map(|entry| entry.id).take(MOST).collect()
}

/// A family and its size apart: `3b model (Llama 3.2)`, `70B Llama 3.3`.
pub(super) fn apart(sentence: &Sentence) -> Option<Found> {
    let (at, end) =
        (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)))?;
    let size = sentence.words(at..end).replace(' ', "");
    for start in 0..sentence.atoms.len() {
        if !may_begin(sentence, start) || (at..end).contains(&start) {
            continue;
        }
        for stop in (start + 1..=(start + 6).min(sentence.atoms.len())).rev() {
            let over = start < end && at < stop;
            let other = |at: usize| sentence.free(at).is_some_and(|word| OTHERS.contains(&word));
            if other(stop)
                || start.checked_sub(1).is_some_and(other)
                || derivative(sentence, start).is_some()
                || DERIVATIVES.iter().any(|word| sentence.is(stop, word))
            {
                continue;
            }
            if over || !sentence.are_free(start..stop) || !closed(sentence, start, stop) {
                continue;
            }
            let whole = format!("{} {size}", text(sentence, start, stop));
            if let Some((Meant::Same(entry), usual)) = meant(&whole) {
                let named = named(entry.id);
                let said = sentence.words(at.min(start)..end.max(stop));
                let model = Model {
                    name: entry.id.into(),
                    said,
                    usual,
                    named,
                };
                return Some(Found {
                    model,
                    range: start..stop,
                    size: Some(at..end),
                });
            }
        }
    }
    None
}

/// A name, with the size that stands apart from it: `qlora 7b mistral`; a size that the name's model has not is another model's.
pub(super) fn with(sentence: &Sentence, mut found: Found) -> Found {
    let inside = found
        .range
        .clone()
        .any(|at| parameters(sentence, at).is_some());
    let size = (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)));
    let (Some((at, end)), false) = (size, inside) else {
        return found;
    };
    if let Some(found) = apart(sentence) {
        return found;
    }
    let number = sentence.get(at).and_then(Atom::number).unwrap_or_default();
    let size = number * if sentence.is(at + 1, "m") { 1e6 } else { 1e9 };
    let entry = found
        .model
        .named
        .catalogue
        .and_then(headroom_catalog::model);
    let ratio = entry.map_or(1.0, |entry| entry.parameters as f64 / size.max(1.0));
    if !(0.6..=1.6).contains(&ratio) {
        let said = sentence.words(at.min(found.range.start)..end.max(found.range.end));
        let named = Named {
            catalogue: None,
            near: found.model.named.catalogue.into_iter().collect(),
            ..found.model.named
        };
        found = Found::unlisted(said, named, found.range);
    }
    found.size = Some(at..end);
    found
}

/// A model that is named and is none of the catalogue's: a word with a size behind it, or a size alone.
pub(super) fn unknown(sentence: &Sentence) -> Option<Found> {
    let (at, end) =
        (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)))?;
    // Back over words that say nothing else; a word is what no space divides.
    let mut start = at;
    while start > 0 && at - start < 8 && sentence.gap(start) < Gap::Break {
        let mut from = start - 1;
        while from > 0 && sentence.gap(from) < Gap::Space {
            from -= 1;
        }
        let run = from..start;
        let glued = sentence.gap(start) < Gap::Space;
        let strange = run.len() > 1
            || sentence.free(from).is_some_and(|word| {
                !is_alone(word) && !word.starts_with(|c: char| c.is_ascii_digit())
            });
        let named = run.clone().any(|at| {
            sentence
                .free(at)
                .is_some_and(|word| word.starts_with(char::is_alphabetic))
        });
        if !sentence.are_free(run) || !(glued || strange && named) {
            break;
        }
        start = from;
    }
    let said = sentence.words(start..end);
    let named = named(&said);
    (start < at).then(|| Found::unlisted(said, named, start..end))
}
