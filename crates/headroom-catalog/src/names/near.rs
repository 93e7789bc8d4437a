//! Entries that an unknown name may mean: of the same family and a close size, or a slip of the pen away.

use super::words::{joined, kept, size};
use super::{model_name, usage_rank};
use crate::{ModelEntry, models};
use headroom_base::order::sorted;

/// How many names are suggested.
const MOST: usize = 3;

/// The models whose names are most like a text, the nearest first: suggestions for an unknown name.
pub fn models_near(text: &str) -> Vec<&'static str> {
    let found = model_name(text);
    match found.entry {
        Some(entry) => vec![entry.id],
        None => found.near,
    }
}

pub(super) fn of(words: &[String]) -> Vec<&'static str> {
    let words: Vec<&str> = kept(words, 3).into_iter().map(|(_, word)| word).collect();
    let mut near = of_size(&words);
    if near.is_empty() {
        near = with_words(&words);
    }
    if near.is_empty() {
        near = misspelt(&joined(&words));
    }
    let near = sorted(near, |(one, entry), (other, rival)| {
        one.cmp(other)
            .then(usage_rank(entry).cmp(&usage_rank(rival)))
            .then(uncommon(entry).cmp(&uncommon(rival)))
            .then(entry.id.cmp(rival.id))
    });
    near.into_iter()
        .take(MOST)
        .map(|(_, entry)| entry.id)
        .collect()
}

/// Entries with how far each is from the name.
type Near = Vec<(u64, &'static ModelEntry)>;

/// The same family, of nearly the same size.
fn of_size(words: &[&str]) -> Near {
    let (Some(family), Some(wanted)) = (
        words.first().map(|word| family(word)),
        words.iter().rev().find_map(|word| size(word)),
    ) else {
        return Vec::new();
    };
    let key = joined(words);
    let close = |entry: &'static ModelEntry| {
        let ratio = entry.parameters as f64 / wanted;
        let own = family.len() >= 2 && self::family(entry.id) == family;
        let shared = shared_beginning(&key, &key_of(entry.id));
        (own && (0.7..=1.4).contains(&ratio)).then_some((64 - shared.min(64), entry))
    };
    models().iter().filter_map(close).collect()
}

/// How far a size is from that of most models that are trained, in tenths of a natural logarithm.
fn uncommon(entry: &ModelEntry) -> u64 {
    ((entry.parameters as f64 / 8e9).ln().abs() * 10.0) as u64
}

/// Entries that have every word.
fn with_words(words: &[&str]) -> Near {
    let telling = words
        .iter()
        .any(|word| word.len() >= 3 && word.starts_with(|c: char| c.is_ascii_alphabetic()));
    let holds = |entry: &&'static ModelEntry| {
        let id = entry.id.replace(['-', '_'], "");
        words.iter().all(|word| id.contains(*word))
            && words.first().is_some_and(|word| id.starts_with(*word))
    };
    if telling {
        models()
            .iter()
            .filter(holds)
            .map(|entry| (0, entry))
            .collect()
    } else {
        Vec::new()
    }
}

/// Entries whose key is one or two edits away.
fn misspelt(key: &str) -> Near {
    let most = match key.len() {
        0..=4 => return Vec::new(),
        5..=7 => 1,
        _ => 2,
    };
    // A number that differs is another version or size.
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    let near = |entry: &'static ModelEntry| {
        let id = key_of(entry.id);
        if digits(key) != digits(&id) {
            return None;
        }
        let edits = edits(key, &id);
        (edits <= most).then_some((edits as u64, entry))
    };
    models().iter().filter_map(near).collect()
}

fn key_of(id: &str) -> String {
    let words: Vec<&str> = id.split('-').collect();
    joined(&words)
}

fn shared_beginning(one: &str, other: &str) -> u64 {
    let same = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other);
    same.count() as u64
}

/// The letters that a name begins with.
fn family(name: &str) -> &str {
    let end = name.find(|c: char| !c.is_ascii_alphabetic());
    name.get(..end.unwrap_or(name.len())).unwrap_or_default()
}

/// The fewest insertions, removals and replacements between two texts.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<u8> = other.bytes().take(64).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, byte) in one.bytes().take(64).enumerate() {
        let mut corner = at;
        let mut left = at + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (known, above) in other.iter().zip(row.iter_mut().skip(1)) {
            let same = corner + usize::from(byte != *known);
            corner = *above;
            left = same.min(left + 1).min(corner + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or_default()
}
