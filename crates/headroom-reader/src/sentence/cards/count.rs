//! How many cards stand beside one.

use std::ops::Range;

use super::super::atoms::{Atom, Gap, Sentence};

/// The number of cards beside a span, and the span with it.
pub(super) fn count(sentence: &Sentence, start: usize, end: usize) -> (Option<u64>, Range<usize>) {
    let whole = |at: usize| {
        let atom = sentence.get(at).filter(|atom| !atom.used)?;
        let named = NUMBERS
            .iter()
            .find(|(word, _)| *word == atom.text)
            .map(|(_, number)| *number);
        named
            .or_else(|| atom.whole())
            .filter(|count| (1..=65536).contains(count))
    };
    // `8x H100`, `8 × H100`
    if let Some(times) = start.checked_sub(1).filter(|at| sentence.is(*at, "x"))
        && let Some((at, count)) = times.checked_sub(1).and_then(|at| Some((at, whole(at)?)))
    {
        return (Some(count), at..end);
    }
    // `H100 x8`, `h100x8`
    if sentence.is(end, "x")
        && let Some(count) = whole(end + 1).filter(|_| !is_unit(sentence, end + 2))
    {
        return (Some(count), start..end + 2);
    }
    // `4 A100s`, `dual 3090`; a number that is none of another word's.
    if let Some((at, count)) = start.checked_sub(1).and_then(|at| Some((at, whole(at)?))) {
        let few = count <= 64
            || count % 8 == 0 && is_cluster(sentence)
            || sentence.is(end.wrapping_sub(1), "s")
            || sentence
                .get(end.wrapping_sub(1))
                .is_some_and(|atom| atom.text == "s");
        let own = sentence.gap(start) <= Gap::Space && few && !takes_number(sentence, at);
        if own {
            return (Some(count), at..end);
        }
    }
    (None, start..end)
}

/// Whether a sentence speaks of a job that needs hundreds of cards: a number before a card is a length otherwise.
fn is_cluster(sentence: &Sentence) -> bool {
    const WORDS: &[&str] = &[
        "tp",
        "pp",
        "fsdp",
        "zero",
        "hsdp",
        "megatron",
        "nodes",
        "deepspeed",
        "ddp",
        "cluster",
        "tensor",
        "pipeline",
    ];
    sentence
        .atoms
        .iter()
        .any(|atom| WORDS.contains(&atom.text.as_str()))
}

/// Whether the number is that of a label before it: `batch 64 4070`, `r 16 3090`.
fn takes_number(sentence: &Sentence, at: usize) -> bool {
    const LABELS: &[&str] = &[
        "batch",
        "bs",
        "mbs",
        "size",
        "r",
        "rank",
        "seq",
        "seqlen",
        "length",
        "ctx",
        "context",
        "len",
        "accum",
        "accumulation",
        "ga",
        "gas",
        "tp",
        "pp",
        "cp",
        "ep",
        "zero",
        "stage",
        "alpha",
        "generations",
        "at",
        "gpt",
        "llama",
        "qwen",
        "gemma",
        "phi",
        "olmo",
        "steps",
        "tokens",
        "lr",
        "fa",
        "z",
        "bf",
        "fp",
        "tf",
        "int",
        "nf",
        "lora",
        "qlora",
        "dora",
    ];
    // `single A100` is none of a label's.
    if sentence.get(at).is_some_and(|atom| atom.number().is_none()) {
        return false;
    }
    // `lora 2 A100` counts cards, `lora 64 4090` is a rank.
    let few = sentence
        .get(at)
        .and_then(Atom::whole)
        .is_some_and(|count| count <= 8);
    let before = at.checked_sub(1).and_then(|at| sentence.get(at));
    before.is_some_and(|atom| {
        let adapter = matches!(atom.text.as_str(), "lora" | "qlora" | "dora");
        LABELS.contains(&atom.text.as_str()) && sentence.gap(at) < Gap::Break && !(adapter && few)
    })
}

/// Whether a number has a unit of its own.
fn is_unit(sentence: &Sentence, at: usize) -> bool {
    sentence.gap(at) == Gap::Glued
        && sentence
            .get(at)
            .is_some_and(|atom| matches!(atom.text.as_str(), "b" | "k" | "gb" | "m"))
}

pub(in crate::sentence) const NUMBERS: &[(&str, u64)] = &[
    ("single", 1),
    ("one", 1),
    ("a", 1),
    ("two", 2),
    ("dual", 2),
    ("pair", 2),
    ("three", 3),
    ("triple", 3),
    ("four", 4),
    ("quad", 4),
    ("five", 5),
    ("six", 6),
    ("eight", 8),
    ("octa", 8),
    ("ten", 10),
    ("sixteen", 16),
    ("thirtytwo", 32),
];
