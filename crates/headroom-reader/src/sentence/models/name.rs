//! The longest run of atoms that is a model's name.

use headroom_catalog::{
    Meant, ModelCategory, ModelEntry, begins_a_name, leaves_network, model_spoken, model_written,
};

use super::super::atoms::{Atom, Gap, Sentence};
use super::{Found, Model};
use crate::names::{Named, named};

/// Longest name in atoms.
const LONGEST: usize = 16;

/// Series of derivatives, most with tokens of their own.
pub(super) const DERIVATIVES: &[&str] = &[
    "hermes",
    "openhermes",
    "dolphin",
    "tulu",
    "nemotron",
    "minitron",
    "openchat",
    "starling",
    "swallow",
    "elyza",
    "sauerkraut",
    "orca",
    "openorca",
    "wizard",
    "wizardlm",
    "nous",
    "alpaca",
    "chinese",
    "korean",
    "japanese",
    "solar",
    "hunyuan",
    "gte",
];

/// Words of tuning and format that belong to a name behind a space, too.
const PARTS: &[&str] = &[
    "instruct",
    "chat",
    "it",
    "hf",
    "meta",
    "thinking",
    "reasoning",
    "deduped",
    "abliterated",
    "uncensored",
    "preview",
];

/// A run of atoms that is a name.
#[derive(Clone, Copy, Debug)]
struct Match {
    start: usize,
    end: usize,
    meant: Meant,
    usual: bool,
}

/// The longest run of atoms that is a model's name.
pub(super) fn find(sentence: &Sentence) -> Option<Found> {
    let found = longest(sentence)?;
    let Match {
        start, end, usual, ..
    } = found;
    let end = word_end(sentence, end);
    let said = sentence.words(start..end);
    let whole = named(&said);
    let other = derivative(sentence, start);
    let entry = match found.meant {
        Meant::Same(entry) if other.is_none() && !goes_on(sentence, &found, entry) => entry,
        // Another network whose name is like the entry's.
        Meant::Same(entry) | Meant::Near(entry) => {
            let start = other.unwrap_or(start);
            let end = if goes_on(sentence, &found, entry) {
                (end + 1).max(found.end + 1)
            } else {
                end
            };
            let said = sentence.words(start..end);
            let whole = Named {
                catalogue: None,
                near: vec![entry.id],
                ..whole
            };
            return Some(Found::unlisted(said, whole, start..end));
        }
    };
    let own = Named {
        catalogue: Some(entry.id),
        near: Vec::new(),
        ..whole.clone()
    };
    // A name that goes on is the whole name's: what `Llama-3.1-8B-Vision` is, `Llama-3.1-8B` is not.
    let (name, named, usual) = if end == found.end {
        (entry.id.to_string(), own, usual)
    } else if let Some(id) = whole.catalogue {
        (id.to_string(), whole, false)
    } else {
        let tail = sentence.words(found.end..end);
        let harmless = tail.bytes().all(|byte| byte.is_ascii_digit())
            || whole.weights.is_some()
            || whole.refused.is_some();
        if !harmless {
            return Some(Found::unlisted(said, whole, start..end));
        }
        (entry.id.to_string(), own, usual)
    };
    let model = Model {
        name,
        said,
        usual,
        named,
    };
    Some(Found {
        model,
        range: start..end,
        size: None,
    })
}

fn longest(sentence: &Sentence) -> Option<Match> {
    let mut best: Option<Match> = None;
    for start in 0..sentence.atoms.len() {
        if !may_begin(sentence, start) {
            continue;
        }
        let limit = (start + LONGEST).min(sentence.atoms.len());
        for end in (start + 1..=limit).rev() {
            if best.is_some_and(|best| best.end - best.start >= end - start) {
                break;
            }
            if !sentence.are_free(start..end) || !closed(sentence, start, end) {
                continue;
            }
            if let Some((meant, usual)) = meant(&text(sentence, start, end)) {
                best = Some(Match {
                    start,
                    end,
                    meant,
                    usual,
                });
                break;
            }
        }
    }
    best
}

/// Where the rest of a name's word ends: `Llama-3.1-8B` goes on to `-Instruct-bnb-4bit`.
fn word_end(sentence: &Sentence, end: usize) -> usize {
    let mut stop = end;
    while let Some(word) = sentence.free(stop) {
        let inside = matches!(sentence.gap(stop), Gap::Joined | Gap::Glued | Gap::Equals);
        let fp8 = word == "fp" && sentence.is(stop + 1, "8") && sentence.gap(stop) == Gap::Joined;
        // `x8` is a count, `s` a plural.
        let count = word == "x" && sentence.gap(stop) == Gap::Glued;
        if !inside || count || is_end(word) && !fp8 {
            break;
        }
        stop += if fp8 { 2 } else { 1 };
    }
    stop
}

/// Where the name of a derivative with a vocabulary of its own begins, if the words before say one: `openhermes 2.5 mistral 7b`.
pub(super) fn derivative(sentence: &Sentence, start: usize) -> Option<usize> {
    (start.saturating_sub(4)..start).find(|at| {
        let open = (at + 1..=start).all(|at| sentence.gap(at) < Gap::Break);
        open && sentence
            .free(*at)
            .is_some_and(|word| DERIVATIVES.contains(&word))
    })
}

/// Whether the word behind a name makes it another network's: `flux 2 dev`, `llama 3.2 3b vision`, `qwen3 0.6b embedding`.
fn goes_on(sentence: &Sentence, found: &Match, entry: &ModelEntry) -> bool {
    let at = found.end;
    let Some(word) = sentence.free(at).filter(|_| sentence.gap(at) < Gap::Break) else {
        return false;
    };
    let next = sentence.free(at + 1).unwrap_or_default();
    let number = sentence
        .get(at)
        .and_then(Atom::number)
        .is_some_and(|number| number < 10.0);
    if found.usual && number && sentence.gap(at) >= Gap::Joined {
        // A version, unless it counts cards.
        let apart = sentence.gap(at + 1) > Gap::Glued && sentence.gap(at + 1) < Gap::Break;
        let cards = [
            "x", "gpu", "gpus", "card", "cards", "a", "h", "b", "l", "t", "v", "rtx", "gtx",
            "nvidia", "mi", "nodes", "node", "tesla", "titan",
        ];
        return apart && !cards.contains(&next) && !next.starts_with(|c: char| c.is_ascii_digit());
    }
    let sees = matches!(
        entry.category,
        ModelCategory::VisionLanguage | ModelCategory::Vision
    );
    match word {
        "vision" | "vl" | "audio" | "omni" => !sees,
        "embedding" | "embeddings" => !matches!(
            next,
            "finetune" | "training" | "model" | "fine" | "finetuning" | "train"
        ),
        "reranker" | "guard" | "medusa" | "eagle" | "moe" => true,
        _ => false,
    }
}

/// Whether a word ends a name: a method, a task, a precision.
fn is_end(word: &str) -> bool {
    leaves_network(word) && !PARTS.contains(&word)
        || matches!(
            word,
            "fp" | "bf" | "float" | "bfloat" | "dora" | "in" | "fft"
        )
}

/// What a text means, and whether it was only said and not named. What people say today goes before an old name.
pub(super) fn meant(text: &str) -> Option<(Meant, bool)> {
    if let Some(entry) = model_spoken(text) {
        return Some((Meant::Same(entry), true));
    }
    model_written(text).map(|meant| (meant, false))
}

/// Whether a name may begin here: a word that some name begins with, at a word's beginning.
pub(super) fn may_begin(sentence: &Sentence, at: usize) -> bool {
    // Behind a dash a name is part of a longer one: `OpenHermes-2.5-Mistral-7B`.
    let before = sentence.get(at).map_or("", |atom| {
        sentence.text.get(..atom.start).unwrap_or_default()
    });
    let opens = sentence.gap(at) > Gap::Joined
        || sentence.gap(at) == Gap::Joined
            && before.ends_with(['/', '+', '`', '\'', '~', '(', '"'])
        || at
            .checked_sub(1)
            .is_some_and(|before| sentence.is(before, "x"));
    opens
        && sentence.free(at).is_some_and(|word| {
            word.starts_with(char::is_alphabetic) && !is_end(word) && begins_a_name(word)
        })
}

/// Whether atoms are one name: no break, no method behind a space, no part of a longer word.
pub(super) fn closed(sentence: &Sentence, start: usize, end: usize) -> bool {
    let inner = (start + 1..end).all(|at| {
        let word = sentence.free(at).unwrap_or_default();
        sentence.gap(at) != Gap::Break && !is_end(word)
    });
    let glued = sentence.gap(end) == Gap::Glued && !sentence.is(end, "s") && !sentence.is(end, "x");
    inner && !glued
}

pub(super) fn text(sentence: &Sentence, start: usize, end: usize) -> String {
    let mut text = String::new();
    for at in start..end {
        let gap = match sentence.gap(at) {
            Gap::Glued => "",
            _ if at == start => "",
            Gap::Joined => "-",
            _ => " ",
        };
        text.push_str(gap);
        text.push_str(sentence.free(at).unwrap_or_default());
    }
    text
}
