//! A card's name in a sentence, with the words of its variant and memory.

use super::super::atoms::{Gap, Sentence};
use super::table::{FIRST, Known, MACHINES, MAKERS, USUAL, VARIANTS, known};

/// A card found at a place.
pub(super) struct Found {
    pub id: &'static str,
    pub start: usize,
    pub end: usize,
    pub usual: bool,
}

/// `g5.12xlarge`: the card, how many of it, and the atom behind.
pub(super) fn machine(sentence: &Sentence, at: usize) -> Option<(&'static str, u64, usize)> {
    let start = sentence
        .get(at)
        .filter(|atom| !atom.used && atom.gap >= Gap::Space)?
        .start;
    let rest = sentence.text.get(start..)?;
    let word = rest
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .next()?
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let (family, size) = word.split_once('.').unwrap_or((&word, ""));
    let (_, id, count) = MACHINES.iter().find(|(known, ..)| *known == family)?;
    // `p4d` and `p5en` are names enough, `g5` is not.
    if !size.ends_with("xlarge") && (family.len() < 3 || !size.is_empty()) {
        return None;
    }
    let count = match (count, size, family) {
        (0, "16xlarge", "p3") | (0, "48xlarge", _) => 8,
        (0, "8xlarge", "p3") | (0, "12xlarge" | "24xlarge", _) => 4,
        (0, ..) => 1,
        (count, ..) => *count,
    };
    let end = start + word.len();
    let behind = sentence.atoms.iter().position(|atom| atom.start >= end);
    Some((id, count, behind.unwrap_or(sentence.atoms.len())))
}

/// The card that is named from here on, with the words of its variant and memory.
pub(super) fn card(sentence: &Sentence, at: usize) -> Option<Found> {
    sentence.free(at)?;
    let mut first = at;
    let mut laptop = false;
    while sentence.free(first).is_some_and(|word| {
        MAKERS.contains(&word) || matches!(word, "laptop" | "mobile" | "notebook")
    }) {
        laptop |= sentence
            .free(first)
            .is_some_and(|word| !MAKERS.contains(&word));
        first += 1;
        if first > at + 4 {
            return None;
        }
    }
    let mut best: Vec<&Known> = Vec::new();
    let mut end = first;
    for card in known() {
        let Some(stop) = core(sentence, first, &card.core, first > at) else {
            continue;
        };
        // `V100s` are several, a `V100S` is one.
        if card.id.starts_with("v100s") && !sentence.words(first..stop).ends_with('S') {
            continue;
        }
        if stop > end {
            best.clear();
            end = stop;
        }
        if stop == end {
            best.push(card);
        }
    }
    // Names of their own count if no longer name of the catalogue is there.
    let mut usual = false;
    for start in at..=first {
        for (words, ids) in USUAL {
            let Some(stop) = core_of(
                sentence,
                start,
                words,
                start > at || words.first() == Some(&"rtx"),
            ) else {
                continue;
            };
            if stop > end || stop == end && start < first {
                end = stop;
                best = ids
                    .iter()
                    .flat_map(|id| known().iter().filter(|card| is_of(card.id, id)))
                    .collect();
                usual = ids.len() > 1;
            }
        }
    }
    let sole = best.len();
    if best.is_empty() {
        return None;
    }
    // `a laptop with a 3060`
    laptop |= sentence
        .atoms
        .iter()
        .any(|atom| !atom.used && matches!(atom.text.as_str(), "laptop" | "notebook"));
    // What stands behind narrows it down.
    let mut variant = if laptop { "laptop" } else { "" };
    let mut gb = None;
    for _ in 0..5 {
        let Some(word) = sentence.free(end) else {
            break;
        };
        if sentence.gap(end) == Gap::Break {
            break;
        }
        let class = match word {
            "mobile" | "notebook" => Some("laptop"),
            "max" if sentence.is(end + 1, "q") => Some("maxq"),
            _ => VARIANTS
                .iter()
                .find(|(class, _)| *class == word)
                .map(|(class, _)| *class),
        };
        if let Some(class) = class.filter(|class| {
            best.iter().any(|card| card.variant == *class) || *class == "sxm" || *class == "pcie"
        }) {
            variant = class;
            end += if class == "maxq" && word == "max" {
                2
            } else {
                1
            };
            // `SXM4`
            let socket = sentence.gap(end) == Gap::Glued
                && sentence
                    .get(end)
                    .is_some_and(|atom| matches!(atom.text.as_str(), "2" | "3" | "4" | "5"));
            end += usize::from(class == "sxm" && socket);
        } else if matches!(
            word,
            "gpu" | "blackwell" | "workstation" | "edition" | "generation"
        ) && word != "gpu"
        {
            end += 1;
        } else if let Some((value, stop)) =
            gigabytes(sentence, end).or_else(|| bare_memory(sentence, end, &best))
        {
            if gb.is_some() || !best.iter().any(|card| near(card.gb, value)) {
                break;
            }
            gb = Some(value);
            end = stop;
        } else {
            break;
        }
    }
    // The memory may stand elsewhere: `12gb 3060`.
    let elsewhere = || {
        (0..sentence.atoms.len()).find_map(|other| {
            let (value, _) = gigabytes(sentence, other)?;
            best.iter()
                .any(|card| near(card.gb, value))
                .then_some(value)
        })
    };
    let gb = gb.or_else(elsewhere);
    let fits = |card: &&&Known| gb.is_none_or(|gb| near(card.gb, gb));
    let left: Vec<&&Known> = best.iter().filter(fits).collect();
    let own: Vec<&&Known> = left
        .iter()
        .copied()
        .filter(|card| card.variant == variant)
        .collect();
    let left = if own.is_empty() { left } else { own };
    let order = |card: &&Known| {
        let first = FIRST.contains(&card.id);
        let plain = match card.variant {
            "" => 0,
            "sxm" => 1,
            "pcie" => 2,
            _ => 3,
        };
        let far = gb.map_or(0, |gb| card.gb.abs_diff(gb));
        (far, !first, plain, card.gb)
    };
    let chosen = if usual && gb.is_none() && variant.is_empty() {
        left.first().copied()
    } else {
        left.iter().min_by_key(|card| order(card)).copied()
    };
    let chosen = chosen?;
    let open = sole > 1 && left.iter().any(|card| card.gb != chosen.gb);
    Some(Found {
        id: chosen.id,
        start: at,
        end,
        usual: open || usual && left.len() > 1,
    })
}

/// Whether an id is that one, or that one with its memory.
fn is_of(id: &str, wanted: &str) -> bool {
    id.strip_prefix(wanted).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('-') && rest.ends_with("gb") && !rest.contains("laptop")
    })
}

fn near(gb: u64, said: u64) -> bool {
    // Drivers show 46 or 45 of 48 GB, people say 140 or 144 of 141.
    gb.abs_diff(said) * 16 <= gb
}

fn core(sentence: &Sentence, at: usize, words: &[String], made: bool) -> Option<usize> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    core_of(sentence, at, &words, made)
}

/// Where a card's own words end; a letter and its number stand together, and a bare number is a card's only if it looks like one.
fn core_of(sentence: &Sentence, at: usize, words: &[&str], made: bool) -> Option<usize> {
    let mut end = at;
    let mut previous = "";
    for word in words {
        // `4070 Ti Super`, `RTX 6000 Ada`, `Titan RTX`
        let digits = word.starts_with(|c: char| c.is_ascii_digit());
        let letter = previous.len() <= 2
            && !previous.is_empty()
            && digits
            && !matches!(previous, "ti" | "xt");
        let gap = sentence.gap(end);
        if end > at
            && (gap >= Gap::Break
                || letter
                    && gap > Gap::Glued
                    && !matches!(previous, "mi" | "gh" | "gb" | "gv")
                    && !made)
        {
            return None;
        }
        if !sentence.is(end, word) {
            return None;
        }
        previous = word;
        end += 1;
    }
    // Part of a longer word or number: `7b`, `1080p`, `l4` of `l40`.
    let glued = sentence.gap(end) == Gap::Glued;
    let next = sentence.free(end).unwrap_or_default();
    let more = glued
        && !matches!(
            next,
            "s" | "x" | "laptop" | "sxm" | "pcie" | "gb" | "super" | "ti"
        );
    let before = sentence.gap(at) == Gap::Glued
        && sentence.get(at.wrapping_sub(1)).is_some_and(|atom| {
            atom.text != "x" && !MAKERS.contains(&atom.text.as_str()) && !atom.text.ends_with('x')
        });
    (!more && !before).then_some(end)
}

/// `80gb`, `80 GB`, `80g`, `24 gig`.
pub(super) fn gigabytes(sentence: &Sentence, at: usize) -> Option<(u64, usize)> {
    let value = sentence.get(at).filter(|atom| !atom.used)?.whole()?;
    let unit = sentence.free(at + 1)?;
    let gap = sentence.gap(at + 1);
    let unit = matches!(unit, "gb" | "gib" | "gig" | "gigs" | "gigabytes") && gap < Gap::Break
        || unit == "g" && gap == Gap::Glued;
    (unit && (1..=2000).contains(&value)).then_some((value, at + 2))
}

/// `A100 80`: the memory without its unit, where a card of the name has that much.
fn bare_memory(sentence: &Sentence, at: usize, cards: &[&Known]) -> Option<(u64, usize)> {
    let value = sentence.get(at).filter(|atom| !atom.used)?.whole()?;
    let several = cards
        .iter()
        .any(|card| Some(card.gb) != cards.first().map(|card| card.gb));
    let own = cards.iter().any(|card| card.gb == value);
    let unit = sentence.gap(at + 1) == Gap::Glued;
    (several && own && !unit && value >= 10).then_some((value, at + 1))
}
