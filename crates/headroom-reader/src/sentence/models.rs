//! The model: an id, a name, or what people say for one, possibly with its size elsewhere.

use headroom_catalog::{
    Meant, ModelCategory, ModelEntry, begins_a_name, leaves_network, model_spoken, model_written,
};

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
    "coder",
    "code",
];

/// Series of derivatives, most with tokens of their own.
const DERIVATIVES: &[&str] = &[
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

pub(super) fn read(sentence: &mut Sentence) -> Option<Model> {
    let found = id(sentence)
        .or_else(|| sized(sentence, name(sentence)))
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

/// A run of atoms that is a name.
#[derive(Clone, Copy, Debug)]
struct Match {
    start: usize,
    end: usize,
    meant: Meant,
    usual: bool,
}

/// The longest run of atoms that is a model's name.
fn name(sentence: &Sentence) -> Option<Found> {
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
            return Some(unlisted(said, whole, start..end));
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
            return Some(unlisted(said, whole, start..end));
        }
        (entry.id.to_string(), own, usual)
    };
    let model = Model {
        said,
        name,
        usual,
        named,
    };
    Some((model, vec![start..end]))
}

/// A size without a name, which is no model: `a 7B model`.
pub(super) fn size_alone(sentence: &mut Sentence) -> Option<String> {
    let found = (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)));
    let (at, end) = found?;
    sentence.use_up(at..end);
    Some(sentence.words(at..end))
}

fn unlisted(said: String, named: Named, range: std::ops::Range<usize>) -> Found {
    let model = Model {
        name: said.clone(),
        said,
        usual: false,
        named,
    };
    (model, vec![range])
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
fn derivative(sentence: &Sentence, start: usize) -> Option<usize> {
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
        .and_then(super::atoms::Atom::number)
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
fn meant(text: &str) -> Option<(Meant, bool)> {
    if let Some(entry) = model_spoken(text) {
        return Some((Meant::Same(entry), true));
    }
    model_written(text).map(|meant| (meant, false))
}

/// Whether a name may begin here: a word that some name begins with, at a word's beginning.
fn may_begin(sentence: &Sentence, at: usize) -> bool {
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

/// A name, with the size that stands apart from it: `qlora 7b mistral`; a size that the name's model has not is another model's.
fn sized(sentence: &Sentence, found: Option<Found>) -> Option<Found> {
    let (model, mut ranges) = found?;
    let inside = ranges
        .iter()
        .any(|range| range.clone().any(|at| parameters(sentence, at).is_some()));
    let apart_at = (0..sentence.atoms.len()).find_map(|at| Some((at, parameters(sentence, at)?)));
    let (Some((at, end)), false) = (apart_at, inside) else {
        return Some((model, ranges));
    };
    if let Some(found) = apart(sentence) {
        return Some(found);
    }
    let number = sentence
        .get(at)
        .and_then(super::atoms::Atom::number)
        .unwrap_or_default();
    let size = number * if sentence.is(at + 1, "m") { 1e6 } else { 1e9 };
    let entry = model.named.catalogue.and_then(headroom_catalog::model);
    let ratio = entry.map_or(1.0, |entry| entry.parameters as f64 / size.max(1.0));
    if (0.6..=1.6).contains(&ratio) {
        ranges.push(at..end);
        return Some((model, ranges));
    }
    let said = sentence.words(
        at.min(ranges.first().map_or(at, |range| range.start))
            ..end.max(ranges.first().map_or(end, |range| range.end)),
    );
    ranges.push(at..end);
    let named = Named {
        catalogue: None,
        near: model.named.catalogue.into_iter().collect(),
        ..model.named
    };
    Some((
        Model {
            name: said.clone(),
            said,
            usual: false,
            named,
        },
        ranges,
    ))
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
