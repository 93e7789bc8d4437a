//! The model: an id, a name, or what people say for one, possibly with its size elsewhere.

use headroom_catalog::{ModelEntry, begins_a_name, model_spoken, model_written};

use super::atoms::{Gap, Sentence};
use crate::names::{Named, named};

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

/// Longest name in atoms.
const LONGEST: usize = 16;

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
];

/// Words that end a name: methods and tasks.
const ENDS: &[&str] = &[
    "lora",
    "qlora",
    "dora",
    "sft",
    "dpo",
    "grpo",
    "ppo",
    "kto",
    "orpo",
    "full",
    "fft",
    "ft",
    "rm",
    "rl",
    "rlhf",
    "pt",
    "finetune",
    "finetuned",
    "finetuning",
    "best",
    "step",
    "original",
    "simpo",
    "cpo",
    "rloo",
    "reward",
    "bf16",
    "tuned",
    "merged",
    "in",
    "inst",
];

pub(super) fn read(sentence: &mut Sentence) -> Option<Model> {
    let found = id(sentence)
        .or_else(|| name(sentence))
        .or_else(|| apart(sentence))
        .or_else(|| unknown(sentence));
    let (mut model, ranges) = found?;
    for range in ranges {
        sentence.use_up(range.clone());
        let mut end = range.end;
        while sentence
            .free(end)
            .is_some_and(|word| SUFFIXES.contains(&word))
            && sentence.gap(end) < Gap::Break
        {
            let word = sentence.free(end).unwrap_or_default();
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

type Found = (Model, Vec<std::ops::Range<usize>>);

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
        return Some((
            Model {
                name: plain.into(),
                said: plain.into(),
                usual: false,
                named,
            },
            vec![from..to],
        ));
    }
    None
}

/// The longest run of atoms that is a model's name.
fn name(sentence: &Sentence) -> Option<Found> {
    let mut best: Option<(usize, usize, &'static ModelEntry, bool)> = None;
    for start in 0..sentence.atoms.len() {
        if !may_begin(sentence, start) {
            continue;
        }
        let limit = (start + LONGEST).min(sentence.atoms.len());
        for end in (start + 1..=limit).rev() {
            if best
                .as_ref()
                .is_some_and(|(from, to, ..)| to - from >= end - start)
            {
                break;
            }
            if !sentence.are_free(start..end) || !closed(sentence, start, end) {
                continue;
            }
            let Some((entry, usual)) = entry(&text(sentence, start, end)) else {
                continue;
            };
            best = Some((start, end, entry, usual));
            break;
        }
    }
    let (start, end, entry, usual) = best?;
    // The rest of the word belongs to the name, where the whole still is one: `Llama-3.1-8B-Instruct-bnb-4bit`.
    let mut stop = end;
    while stop < sentence.atoms.len()
        && matches!(sentence.gap(stop), Gap::Joined | Gap::Glued | Gap::Equals)
        && sentence.free(stop).is_some_and(|word| !is_end(word))
    {
        stop += 1;
    }
    let said = sentence.words(start..stop);
    let whole = named(&said);
    // A name that goes on is the whole name's: what `Llama-3.1-8B-Vision` is, `Llama-3.1-8B` is not.
    let own = |weights, refused| Named {
        catalogue: Some(entry.id),
        weights,
        refused,
        near: Vec::new(),
    };
    let (name, named, usual, end) = if stop == end {
        (
            entry.id.to_string(),
            own(whole.weights, whole.refused),
            usual,
            end,
        )
    } else if let Some(id) = whole.catalogue {
        (id.to_string(), whole, false, stop)
    } else {
        let tail = sentence.words(end..stop);
        let harmless = tail.bytes().all(|byte| byte.is_ascii_digit())
            || whole.weights.is_some()
            || whole.refused.is_some();
        if harmless {
            (
                entry.id.to_string(),
                own(whole.weights, whole.refused),
                usual,
                stop,
            )
        } else {
            (said, whole, false, stop)
        }
    };
    Some((
        Model {
            said: sentence.words(start..end),
            name,
            usual,
            named,
        },
        vec![start..end],
    ))
}

fn is_end(word: &str) -> bool {
    ENDS.contains(&word)
}

/// The entry of a text, and whether it was only said and not named. What people say today goes before an old name.
fn entry(text: &str) -> Option<(&'static ModelEntry, bool)> {
    if let Some(entry) = model_spoken(text) {
        return Some((entry, true));
    }
    model_written(text).map(|entry| (entry, false))
}

/// Whether a name may begin here: a word that some name begins with, at a word's beginning.
fn may_begin(sentence: &Sentence, at: usize) -> bool {
    let opens = sentence.gap(at) != Gap::Glued
        || at
            .checked_sub(1)
            .is_some_and(|before| sentence.is(before, "x"));
    opens
        && sentence.free(at).is_some_and(|word| {
            word.starts_with(char::is_alphabetic) && !is_end(word) && begins_a_name(word)
        })
}

/// Whether atoms are one name: no break, no method behind a space, no part of a longer word.
fn closed(sentence: &Sentence, start: usize, end: usize) -> bool {
    let inner = (start + 1..end).all(|at| {
        let word = sentence.free(at).unwrap_or_default();
        sentence.gap(at) != Gap::Break && !is_end(word)
    });
    let glued = sentence.gap(end) == Gap::Glued && !sentence.is(end, "s") && !sentence.is(end, "x");
    inner && !glued
}

fn text(sentence: &Sentence, start: usize, end: usize) -> String {
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

/// A family and its size apart: `3b model (Llama 3.2)`, `70B Llama 3.3`.
fn apart(sentence: &Sentence) -> Option<Found> {
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
            if other(stop) || start.checked_sub(1).is_some_and(other) {
                continue;
            }
            if over || !sentence.are_free(start..stop) || !closed(sentence, start, stop) {
                continue;
            }
            let whole = format!("{} {size}", text(sentence, start, stop));
            if let Some((entry, usual)) = entry(&whole) {
                let named = named(entry.id);
                let said = sentence.words(at.min(start)..end.max(stop));
                return Some((
                    Model {
                        name: entry.id.into(),
                        said,
                        usual,
                        named,
                    },
                    vec![start..stop, at..end],
                ));
            }
        }
    }
    None
}

/// A model that is named and is none of the catalogue's: a word with a size behind it, or a size alone.
fn unknown(sentence: &Sentence) -> Option<Found> {
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
                !super::vocabulary::is_alone(word)
                    && !word.starts_with(|c: char| c.is_ascii_digit())
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
    (start < at).then_some((
        Model {
            name: said.clone(),
            said,
            usual: false,
            named,
        },
        vec![start..end],
    ))
}
