//! Sentences: `8xH100 FSDP llama 3 70b full finetune bf16`. Rules, no model.
//!
//! The text becomes atoms; the model, the cards and then phrases, the longest first, use atoms up; numbers go to the words they stand
//! with; what is left is said to be unread.

mod atoms;
mod cards;
mod conclude;
mod models;
mod numbers;
mod phrases;
mod vocabulary;

use super::fact::Fact;
use super::facts::Facts;
use atoms::Sentence;
use numbers::Numbers;
use vocabulary::{Say, is_known, is_stop, nearest, phrases};

/// What a sentence says; words that were not understood are in `unread`.
pub fn read(text: &str) -> Facts {
    let mut sentence = Sentence::new(text, is_known, nearest);
    let model = models::read(&mut sentence);
    let cards = cards::read(&mut sentence);
    let mut said = said(&mut sentence);
    let size = if model.is_none() {
        models::size_alone(&mut sentence)
    } else {
        None
    };
    let image = model.as_ref().is_some_and(conclude::is_image);
    numbers::left_over(&mut sentence, &mut said.numbers, image);
    let unread = sentence.left(is_stop);
    let mut facts = conclude::facts(model, cards, said);
    if let Some(size) = size {
        facts.model = Fact::Unknown(match models::of_size(&size).as_slice() {
            [] => format!("`{size}` is a size of many models"),
            some => format!(
                "`{size}` is a size of many models, such as {}",
                some.join(", ")
            ),
        });
    }
    facts.unread = unread;
    if facts.gpu.value().is_none() {
        facts.notes.extend(machines(text));
    }
    facts
}

/// Machines that are named without their GPU, each with a GPU that they may have.
fn machines(text: &str) -> impl Iterator<Item = String> {
    const WITHOUT_GPU: &[(&str, &str)] = &[
        ("mac", "M3 Max 64GB"),
        ("macbook", "M3 Max 64GB"),
        ("rocm", "MI300X"),
        ("colab", "T4"),
        ("kaggle", "T4"),
        ("laptop", "RTX 4070 laptop"),
    ];
    let text = text.to_lowercase();
    let named = move |word: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|it| it == word)
    };
    let found = WITHOUT_GPU.iter().filter(move |(word, _)| named(word));
    found.map(|(word, gpu)| {
        format!("`{word}` does not say which GPU it has: name it, such as {gpu}")
    })
}

/// What the phrases say, each with the user's words.
#[derive(Debug, Default)]
struct Said {
    phrases: Vec<(Say, String)>,
    numbers: Numbers,
}

fn said(sentence: &mut Sentence) -> Said {
    let mut said = Said::default();
    let mut labels = Vec::new();
    let mut adapters = Vec::new();
    for (words, say) in phrases() {
        let mut at = 0;
        while at < sentence.atoms.len() {
            let Some(end) = sentence
                .phrase(at, words)
                .filter(|end| whole(sentence, at, *end))
            else {
                at += 1;
                continue;
            };
            match say {
                Say::Number(number) => labels.push((at..end, *number)),
                Say::Wanted(wanted) => {
                    // `max length 2048` is a length, `max length` a question.
                    match numbers::label_of(*wanted) {
                        Some(number) if numbers::right(sentence, end).is_some() => {
                            labels.push((at..end, number));
                        }
                        _ if numbers::is_asked(sentence, *wanted, at, end) => {
                            said.phrases.push((*say, sentence.words(at..end)));
                        }
                        _ => {}
                    }
                }
                _ => {
                    if matches!(say, Say::Adapter(_)) {
                        adapters.push(at..end);
                    }
                    let words = sentence.words(at..end);
                    let denied = at.checked_sub(1).is_some_and(|before| {
                        let not = sentence.is(before, "no")
                            || sentence.is(before, "without")
                            || sentence.is(before, "not")
                            || sentence.is(before, "disable")
                            || sentence.is(before, "o");
                        not && sentence.gap(at) < atoms::Gap::Break
                    }) || sentence.is(end, "off")
                        || sentence.is(end, "disabled");
                    said.phrases.push((denied_or(*say, denied), words));
                }
            }
            sentence.use_up(at..end);
            at = end;
        }
    }
    labels.sort_by_key(|(range, _)| range.start);
    numbers::assign(sentence, &labels, &mut said.numbers);
    numbers::rank_behind(sentence, &adapters, &mut said.numbers);
    said
}

/// Whether a phrase is no part of a longer word: `amp` in `amp2`.
fn whole(sentence: &Sentence, start: usize, end: usize) -> bool {
    let word = |at: usize| {
        sentence
            .get(at)
            .map(|atom| atom.text.as_str())
            .unwrap_or_default()
    };
    let number = |at: usize| word(at).starts_with(|c: char| c.is_ascii_digit());
    let glued = sentence.gap(end) == atoms::Gap::Glued && sentence.get(end).is_some();
    // A number may be glued to its label: `bs8`, `tp2`.
    let behind = glued && (!number(end) || number(end - 1)) && !matches!(word(end), "s" | "x");
    let before = sentence.gap(start) == atoms::Gap::Glued
        && start > 0
        && !number(start - 1)
        && word(start - 1) != "x";
    !behind && !before
}

/// What a phrase behind `no` says.
fn denied_or(say: Say, denied: bool) -> Say {
    use super::words::{Checkpointing, Offload};
    if !denied {
        return say;
    }
    match say {
        Say::Adapter(_) => Say::Full,
        Say::Checkpointing(_) => Say::Checkpointing(Checkpointing::Off),
        Say::Offload(_) => Say::Offload(Offload::None),
        Say::Liger => Say::Denied(vocabulary::Switch::Liger),
        Say::Compile => Say::Denied(vocabulary::Switch::Compile),
        Say::Packing => Say::Denied(vocabulary::Switch::Packing),
        Say::MixedPrecision => Say::Compute(super::words::Compute::Fp32),
        _ => Say::Nothing,
    }
}

#[cfg(test)]
mod tests;
