//! The card, and how many of it: `4090`, `2 x a6000`, `8xH100`, `A100-80GB x8`, `24GB`.

mod count;
mod find;
mod table;

use super::atoms::{Atom, Gap, Sentence};
use count::count;
use find::{card, gigabytes, machine};

pub(super) use count::NUMBERS;

/// What a sentence says of its cards.
#[derive(Debug, Default)]
pub(super) struct Cards {
    pub card: Option<Card>,
    /// GB of a card that is not named, or beside its name.
    pub gib: Option<(u64, String)>,
    /// The GPUs that stand with the card.
    pub count: Option<(u64, String)>,
    /// `2x8 H100`
    pub nodes: Option<u64>,
    /// Where the count stands.
    pub at: usize,
    /// Whether several are meant without a number: `3090s`.
    pub several: bool,
    /// A card that the catalogue has not.
    pub unknown: Option<String>,
}

#[derive(Debug)]
pub(super) struct Card {
    pub id: &'static str,
    pub said: String,
    /// Whether the words leave several cards open, of which this is the usual.
    pub usual: bool,
}

pub(super) fn read(sentence: &mut Sentence) -> Cards {
    let mut cards = Cards::default();
    let mut at = 0;
    while at < sentence.atoms.len() {
        if let Some(found) = machine(sentence, at) {
            let (id, count, end) = found;
            let said = sentence.words(at..end);
            sentence.use_up(at..end);
            if count > 0 {
                cards.count = Some((count, said.clone()));
            }
            cards.card.get_or_insert(Card {
                id,
                said,
                usual: false,
            });
            at = end;
            continue;
        }
        let Some(found) = card(sentence, at) else {
            at += 1;
            continue;
        };
        let said = sentence.words(found.start..found.end);
        let plural = plural(sentence, found.end);
        let end = found.end + usize::from(plural);
        sentence.use_up(found.start..end);
        let (count, mut span) = count(sentence, found.start, end);
        if let Some(mut count) = count {
            // `2x8 H100`, `2 x 8xH100`
            let times = span
                .start
                .checked_sub(2)
                .filter(|at| sentence.is(at + 1, "x"));
            let nodes = times.and_then(|at| sentence.get(at).filter(|atom| !atom.used)?.whole());
            if let (Some(nodes @ 1..=4096), Some(at)) = (nodes, times) {
                cards.nodes = Some(nodes);
                count = count.saturating_mul(nodes);
                span.start = at;
            }
            if cards.count.is_none() {
                cards.at = span.start;
                cards.count = Some((count, sentence.words(span.clone())));
            }
        }
        sentence.use_up(span.clone());
        // `v5e-8`
        let chips = sentence
            .get(end)
            .filter(|atom| !atom.used && atom.gap == Gap::Joined);
        if let Some(chips) = chips.and_then(Atom::whole)
            && found.id.starts_with("tpu-")
            && cards.count.is_none()
        {
            cards.at = end;
            cards.count = Some((chips, sentence.words(end..end + 1)));
            sentence.use_up(end..end + 1);
        }
        cards.several |= plural;
        cards.card.get_or_insert(Card {
            id: found.id,
            said,
            usual: found.usual,
        });
        at = span.end.max(end);
    }
    if cards.card.is_none() {
        for words in table::UNKNOWN {
            let found =
                (0..sentence.atoms.len()).find_map(|at| Some((at, sentence.phrase(at, words)?)));
            if let Some((at, end)) = found {
                let (count, span) = count(sentence, at, end);
                let mut end = end;
                while sentence.free(end).is_some_and(|word| {
                    matches!(
                        word,
                        "orin" | "nano" | "agx" | "xavier" | "nx" | "thor" | "super"
                    )
                }) {
                    end += 1;
                }
                cards.unknown = Some(sentence.words(at..end));
                sentence.use_up(at..end);
                if let Some(count) = count {
                    cards
                        .count
                        .get_or_insert((count, sentence.words(span.clone())));
                }
                sentence.use_up(span);
                break;
            }
        }
    }
    memory(sentence, &mut cards);
    cards
}

fn plural(sentence: &Sentence, at: usize) -> bool {
    sentence.is(at, "s") && matches!(sentence.gap(at), Gap::Glued | Gap::Joined)
}

/// Memory that stands without a card, or apart from it.
fn memory(sentence: &mut Sentence, cards: &mut Cards) {
    let mut at = 0;
    while at < sentence.atoms.len() {
        let Some((value, mut end)) = gigabytes(sentence, at) else {
            at += 1;
            continue;
        };
        let word = |at: usize| sentence.free(at).unwrap_or_default();
        let of_host = (end..end + 3).any(|next| {
            matches!(word(next), "ram" | "ddr" | "host") && sentence.gap(next) < Gap::Break
        });
        if of_host {
            let stop = (end..end + 3).find(|next| matches!(word(*next), "ram" | "ddr" | "host"));
            sentence.use_up(at..stop.map_or(end, |stop| stop + 1));
            at = end;
            continue;
        }
        let mut several = false;
        while matches!(
            word(end),
            "vram" | "card" | "cards" | "gpu" | "gpus" | "memory" | "of" | "graphics" | "each"
        ) && sentence.gap(end) < Gap::Break
        {
            several |= matches!(word(end), "cards" | "gpus" | "each");
            end += 1;
        }
        let (count, span) = count(sentence, at, end);
        if cards.gib.is_none() {
            cards.gib = Some((value, sentence.words(at..end)));
        }
        if let (Some(count), None) = (count, &cards.count) {
            cards.count = Some((count, sentence.words(span.clone())));
        }
        cards.several |= several;
        sentence.use_up(span);
        at = end;
    }
}
