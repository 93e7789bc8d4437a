//! Numbers and the words they belong to: `batch 4`, `1024 tokens`, `at 4k`, `8x4096`, `512x768`.

use std::ops::Range;

use super::atoms::{Gap, Sentence};
use super::cards::NUMBERS;
use super::vocabulary::Number;
use crate::words::Wanted;

/// The first value of each kind, with the user's words.
#[derive(Debug, Default)]
pub(super) struct Numbers(Vec<(Number, u64, String, usize)>);

impl Numbers {
    pub fn get(&self, kind: Number) -> Option<(u64, &str)> {
        let found = self.0.iter().find(|(known, ..)| *known == kind)?;
        Some((found.1, found.2.as_str()))
    }

    /// The atom that a value of this kind stands at.
    pub fn place(&self, kind: Number) -> Option<usize> {
        self.0
            .iter()
            .find(|(known, ..)| *known == kind)
            .map(|found| found.3)
    }

    fn add(&mut self, kind: Number, value: u64, said: String, at: usize) {
        if self.get(kind).is_none() {
            self.0.push((kind, value, said, at));
        }
    }
}

/// The widths and heights are numbers of their own: they come in pairs.
pub(super) const fn label_of(wanted: Wanted) -> Option<Number> {
    match wanted {
        Wanted::Batch => Some(Number::Batch),
        Wanted::Length => Some(Number::Length),
        Wanted::Cards | Wanted::Cheapest => None,
    }
}

/// Whether words ask: `how many` asks for cards only with cards behind it.
pub(super) fn is_asked(sentence: &Sentence, wanted: Wanted, start: usize, end: usize) -> bool {
    let word = |at: usize| {
        sentence
            .get(at)
            .map(|atom| atom.text.as_str())
            .unwrap_or_default()
    };
    if wanted != Wanted::Cards || word(start) != "how" || end - start > 2 {
        return true;
    }
    let used = sentence.get(end).is_some_and(|atom| atom.used);
    used || matches!(
        word(end),
        "gpus"
            | "cards"
            | "gpu"
            | "card"
            | "nodes"
            | "accelerators"
            | "graphics"
            | "of"
            | "x"
            | "rtx"
            | "nvidia"
            | "such"
            | "do"
            | "would"
    )
}

/// A number with its `k`, and where it ends.
fn quantity(sentence: &Sentence, at: usize) -> Option<(u64, usize)> {
    let atom = sentence.get(at).filter(|atom| !atom.used)?;
    if let Some((_, value)) = NUMBERS
        .iter()
        .find(|(word, _)| *word == atom.text && *word != "a")
    {
        return Some((*value, at + 1));
    }
    let value = atom.number().filter(|value| *value < 1e12)?;
    let unit = sentence
        .free(at + 1)
        .filter(|_| sentence.gap(at + 1) <= Gap::Joined);
    match unit {
        Some("k") if value <= 100_000.0 => Some((thousands(value), at + 2)),
        Some("m") if value <= 100.0 && sentence.gap(at + 1) == Gap::Glued => {
            Some(((value * 1_048_576.0) as u64, at + 2))
        }
        _ => (value.fract() == 0.0).then_some((value as u64, at + 1)),
    }
}

/// What `k` means: lengths are powers of two or small multiples of them, `10k` is ten thousand.
fn thousands(value: f64) -> u64 {
    // In halves, for `1.5k`.
    let halves = value * 2.0;
    let decimal = (value * 1000.0) as u64;
    if halves.fract() != 0.0 || halves < 1.0 {
        return decimal;
    }
    let halves = halves as u64;
    let odd = halves >> halves.trailing_zeros();
    // 40k is Qwen's 40960.
    if odd <= 3 || halves == 80 {
        halves * 512
    } else {
        decimal
    }
}

/// The quantity behind a label.
pub(super) fn right(sentence: &Sentence, end: usize) -> Option<(u64, Range<usize>)> {
    let mut at = end;
    while at < end + 3
        && sentence.free(at).is_some_and(|word| {
            matches!(
                word,
                "of" | "is"
                    | "to"
                    | "size"
                    | "at"
                    | "up"
                    | "around"
                    | "about"
                    | "per"
                    | "device"
                    | "with"
                    | "steps"
                    | "set"
                    | "total"
                    | "x"
            )
        })
    {
        at += 1;
    }
    let open = (end..=at).all(|at| sentence.gap(at) < Gap::Break);
    let (value, stop) = quantity(sentence, at)?;
    open.then_some((value, at..stop))
}

/// The quantity before a label.
fn left(sentence: &Sentence, start: usize) -> Option<(u64, Range<usize>)> {
    if sentence.gap(start) == Gap::Break {
        return None;
    }
    (1..=2).find_map(|back| {
        let at = start.checked_sub(back)?;
        let (value, stop) = quantity(sentence, at)?;
        (stop == start).then_some((value, at..stop))
    })
}

/// Whether a number can be of this kind.
fn is_plausible(kind: Number, value: u64) -> bool {
    match kind {
        Number::Length => (16..=16_777_216).contains(&value),
        Number::Prompt | Number::Completion => (8..=16_777_216).contains(&value),
        Number::Pixels => (16..=16_384).contains(&value),
        Number::Rank => (1..=4096).contains(&value),
        Number::Nothing => true,
        Number::Batch | Number::GlobalBatch => (1..=1_048_576).contains(&value),
        _ => (1..=65_536).contains(&value),
    }
}

type Label = (Range<usize>, Number);

/// Gives numbers to labels.
pub(super) fn assign(sentence: &mut Sentence, labels: &[Label], numbers: &mut Numbers) {
    single_letters(sentence, numbers);
    let word = |sentence: &Sentence, at: usize| {
        sentence
            .get(at)
            .map(|atom| atom.text.clone())
            .unwrap_or_default()
    };
    let mut open: Vec<&Label> = Vec::new();
    // Behind a label first, but before a unit.
    for label in labels {
        let (range, kind) = label;
        let unit = kind.is_unit(&word(sentence, range.start));
        // DeepSeek's R1 is no rank.
        if *kind == Number::Rank
            && sentence.is(range.end, "1")
            && sentence.gap(range.end) == Gap::Glued
        {
            continue;
        }
        let behind = right(sentence, range.end).filter(|(value, _)| is_plausible(*kind, *value));
        let before = left(sentence, range.start).filter(|(value, _)| is_plausible(*kind, *value));
        let labelled = |at: usize| {
            labels.iter().any(|(other, kind)| {
                other.end == at
                    && !kind.is_unit(&word(sentence, other.start))
                    && sentence.gap(at) < Gap::Break
            })
        };
        let before = before.filter(|(_, at)| !labelled(at.start));
        let chosen = if unit {
            before.or(behind.filter(|_| *kind != Number::Gpus && *kind != Number::Nodes))
        } else {
            // `2048 seq 4 batch`: the number behind is another label's, as the last label of the row has none behind.
            let theirs = behind
                .as_ref()
                .is_some_and(|(_, at)| is_before_units(sentence, labels, at.end));
            if theirs && before.is_some() {
                before
            } else {
                behind
            }
        };
        match chosen {
            Some((value, at)) => take(sentence, numbers, *kind, value, at, range),
            None => open.push(label),
        }
    }
    for (range, kind) in open {
        // `dropout 0.05`
        let fraction = sentence
            .get(range.end)
            .is_some_and(|atom| !atom.used && atom.number().is_some());
        if *kind == Number::Nothing && fraction && sentence.gap(range.end) < Gap::Break {
            take(sentence, numbers, *kind, 0, range.end..range.end + 1, range);
            continue;
        }
        if let Some((value, at)) =
            left(sentence, range.start).filter(|(value, _)| is_plausible(*kind, *value))
        {
            take(sentence, numbers, *kind, value, at, range);
        }
    }
}

/// Whether labels in a row from here on have their numbers before them.
fn is_before_units(sentence: &Sentence, labels: &[Label], mut at: usize) -> bool {
    let mut row = 0;
    loop {
        let next = labels.iter().find(|(range, _)| range.start == at);
        let Some((range, _)) = next.filter(|_| sentence.gap(at) < Gap::Break) else {
            return row > 0;
        };
        let Some((_, behind)) = right(sentence, range.end) else {
            return true;
        };
        row += 1;
        // Another label behind the number goes on with the row.
        at = behind.end;
        if labels.iter().all(|(range, _)| range.start != at) {
            return false;
        }
    }
}

fn take(
    sentence: &mut Sentence,
    numbers: &mut Numbers,
    kind: Number,
    value: u64,
    at: Range<usize>,
    label: &Range<usize>,
) {
    let said = sentence.words(at.start.min(label.start)..at.end.max(label.end));
    sentence.use_up(at.start.min(label.end)..at.end);
    match kind {
        Number::Nothing => {
            // `lr 2e-4`
            let mut end = at.end;
            while sentence.free(end).is_some()
                && sentence.gap(end) <= Gap::Joined
                && end < at.end + 4
            {
                end += 1;
            }
            sentence.use_up(at.start..end);
        }
        Number::Batch => {
            numbers.add(kind, value, said, at.start);
            // `batch 8x4096`
            if sentence.is(at.end, "x")
                && let Some((length, stop)) =
                    quantity(sentence, at.end + 1).filter(|(length, _)| *length >= 64)
            {
                let said = sentence.words(at.start..stop);
                numbers.add(Number::Length, length, said, at.start);
                sentence.use_up(at.end..stop);
            }
        }
        Number::Pixels => {
            let screen = label.len() == 1 && sentence.words(label.clone()) == "p";
            let width = match value {
                720 if screen => 1280,
                1080 if screen => 1920,
                480 if screen => 832,
                _ => value,
            };
            // `resolution 512x768`
            let other = sentence
                .is(at.end, "x")
                .then(|| quantity(sentence, at.end + 1))
                .flatten();
            let (width, height) = match other {
                Some((height, stop)) => {
                    sentence.use_up(at.end..stop);
                    (value, height)
                }
                None => (width, value),
            };
            // `1024x1024px`: the other stands before.
            let before = at
                .start
                .checked_sub(2)
                .filter(|_| sentence.is(at.start.wrapping_sub(1), "x"));
            let width = match before.and_then(|before| Some((before, quantity(sentence, before)?)))
            {
                Some((before, (width, _))) => {
                    sentence.use_up(before..at.start);
                    width
                }
                None => width,
            };
            numbers.add(Number::Width, width, said.clone(), at.start);
            numbers.add(Number::Height, height, said, at.start);
        }
        _ => numbers.add(kind, value, said, at.start),
    }
}

/// The rank that stands behind an adapter's name without a word: `lora 64`.
pub(super) fn rank_behind(
    sentence: &mut Sentence,
    adapters: &[Range<usize>],
    numbers: &mut Numbers,
) {
    for range in adapters {
        let at = range.end;
        let rank = sentence
            .get(at)
            .filter(|atom| !atom.used && atom.gap < Gap::Break)
            .and_then(super::atoms::Atom::whole);
        let alone = sentence.gap(at + 1) > Gap::Glued || sentence.get(at + 1).is_none();
        if let Some(rank) = rank.filter(|rank| {
            rank.is_power_of_two() && (4..=256).contains(rank) && alone && !sentence.is(at + 1, "x")
        }) {
            let said = sentence.words(range.start..at + 1);
            sentence.use_up(at..at + 1);
            numbers.add(Number::Rank, rank, said, at);
        }
    }
}

/// `b=8`, `T=1024`, `n=8`: letters that are a setting's only before `=`.
fn single_letters(sentence: &mut Sentence, numbers: &mut Numbers) {
    for at in 0..sentence.atoms.len() {
        let kind = match sentence.free(at) {
            Some("b") => Number::Batch,
            Some("t" | "l") => Number::Length,
            Some("g" | "n" | "k") => Number::Samples,
            _ => continue,
        };
        if sentence.gap(at + 1) != Gap::Equals {
            continue;
        }
        if let Some((value, stop)) =
            quantity(sentence, at + 1).filter(|(value, _)| is_plausible(kind, *value))
        {
            let said = sentence.words(at..stop);
            sentence.use_up(at..stop);
            numbers.add(kind, value, said, at);
        }
    }
}

/// Numbers without a word: sizes of images, `batch x length`, and a length that nothing names.
pub(super) fn left_over(sentence: &mut Sentence, numbers: &mut Numbers, image: bool) {
    for at in 0..sentence.atoms.len() {
        let Some((first, end)) = quantity(sentence, at) else {
            continue;
        };
        if !sentence.is(end, "x") {
            continue;
        }
        let Some((second, stop)) = quantity(sentence, end + 1) else {
            continue;
        };
        let said = sentence.words(at..stop);
        if first >= 64 && second >= 64 {
            numbers.add(Number::Width, first, said.clone(), at);
            numbers.add(Number::Height, second, said, at);
            let mut stop = stop;
            // `512x512x49`: frames.
            if let Some((frames, last)) = sentence
                .is(stop, "x")
                .then(|| quantity(sentence, stop + 1))
                .flatten()
            {
                numbers.add(Number::Frames, frames, sentence.words(stop + 1..last), stop);
                stop = last;
            }
            sentence.use_up(at..stop);
        } else if second >= 128 && !image {
            numbers.add(Number::Batch, first, said.clone(), at);
            numbers.add(Number::Length, second, said, at);
            sentence.use_up(at..stop);
        }
    }
    let taken = if image {
        numbers.get(Number::Height).is_some()
    } else {
        numbers.get(Number::Length).is_some()
    };
    if taken {
        return;
    }
    // The likeliest first: behind `at`, with a `k`, a multiple of 64.
    let mut best: Option<(u8, u64, Range<usize>)> = None;
    for at in 0..sentence.atoms.len() {
        let Some((value, end)) = quantity(sentence, at) else {
            continue;
        };
        if sentence.gap(end) == Gap::Glued && sentence.get(end).is_some()
            || sentence.gap(at) == Gap::Glued
        {
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| sentence.free(before));
        let kilo = end - at > 1;
        let rank = if matches!(before, Some("at")) && value >= 64 {
            0
        } else if kilo && value >= 512 {
            1
        } else if value >= 64 && value % 64 == 0 {
            2
        } else {
            continue;
        };
        let limit = if image { 4096 } else { 16_777_216 };
        if value <= limit && best.as_ref().is_none_or(|(known, ..)| rank < *known) {
            best = Some((rank, value, at..end));
        }
    }
    if let Some((_, value, range)) = best {
        let said = sentence.words(range.clone());
        if image {
            numbers.add(Number::Width, value, said.clone(), range.start);
            numbers.add(Number::Height, value, said, range.start);
        } else {
            numbers.add(Number::Length, value, said, range.start);
        }
        sentence.use_up(range);
    }
}
