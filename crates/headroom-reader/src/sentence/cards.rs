//! The card, and how many of it: `4090`, `2 x a6000`, `8xH100`, `A100-80GB x8`, `24GB`.

use std::sync::OnceLock;

use headroom_catalog::gpus;

use super::atoms::{Gap, Sentence};

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

/// A catalogue's card by the words that people name it by.
struct Known {
    id: &'static str,
    /// `a`, `100`; `4070`, `ti`, `super`.
    core: Vec<String>,
    /// `sxm`, `pcie`, `laptop`: said beside the core or left out.
    variant: &'static str,
    gb: u64,
}

const VARIANTS: &[(&str, &[&str])] = &[
    ("sxm", &["sxm", "sxm2", "sxm4", "sxm5"]),
    ("pcie", &["pcie"]),
    ("nvl", &["nvl"]),
    ("laptop", &["laptop"]),
    ("maxq", &["maxq"]),
    ("server", &["server"]),
    ("hbm2e", &["hbm2e"]),
];

/// Words before a card's number, which say nothing more.
const MAKERS: &[&str] = &[
    "nvidia", "geforce", "rtx", "gtx", "tesla", "amd", "radeon", "rx", "instinct", "intel",
    "google",
];

fn known() -> &'static [Known] {
    static KNOWN: OnceLock<Vec<Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        gpus()
            .iter()
            .map(|gpu| of_id(gpu.id, u64::from(gpu.memory.marketing_gb)))
            .collect()
    })
}

fn of_id(id: &'static str, gb: u64) -> Known {
    let mut core = Vec::new();
    let mut variant = "";
    for part in id.split('-') {
        let class = VARIANTS.iter().find(|(_, words)| words.contains(&part));
        let memory = part
            .strip_suffix("gb")
            .is_some_and(|number| number.parse::<u64>().is_ok());
        if let Some((class, _)) = class {
            variant = class;
        } else if !memory
            && !matches!(
                part,
                "rtx" | "gtx" | "rx" | "radeon" | "blackwell" | "tile" | "gcd"
            )
        {
            core.extend(pieces(part));
        }
    }
    match id {
        "titan-rtx-24gb" => core.push("rtx".into()),
        "radeon-pro-w7900-48gb" => core.retain(|word| word != "pro"),
        _ => {}
    }
    Known {
        id,
        core,
        variant,
        gb,
    }
}

/// Runs of letters and of digits.
fn pieces(word: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for c in word.chars() {
        let digit = c.is_ascii_digit();
        match all.last_mut() {
            Some(last) if last.starts_with(|c: char| c.is_ascii_digit()) == digit => last.push(c),
            _ => all.push(c.into()),
        }
    }
    all
}

/// Names that leave several cards open, with the usual one first; and names that ids do not have.
const USUAL: &[(&[&str], &[&str])] = &[
    (
        &["rtx", "6000"],
        &[
            "rtx-6000-ada-48gb",
            "quadro-rtx-6000-24gb",
            "rtx-pro-6000-blackwell-96gb",
        ],
    ),
    (
        &["rtx", "5000"],
        &[
            "rtx-5000-ada-32gb",
            "quadro-rtx-5000-16gb",
            "rtx-pro-5000-blackwell-48gb",
        ],
    ),
    (
        &["rtx", "4000"],
        &[
            "rtx-4000-ada-20gb",
            "quadro-rtx-4000-8gb",
            "rtx-pro-4000-blackwell-24gb",
        ],
    ),
    (&["rtx", "8000"], &["quadro-rtx-8000-48gb"]),
    (&["quadro", "rtx", "4000"], &["quadro-rtx-4000-8gb"]),
    (&["quadro", "rtx", "5000"], &["quadro-rtx-5000-16gb"]),
    (&["quadro", "rtx", "6000"], &["quadro-rtx-6000-24gb"]),
    (&["quadro", "rtx", "8000"], &["quadro-rtx-8000-48gb"]),
    (&["pro", "w", "7900"], &["radeon-pro-w7900-48gb"]),
    (&["6000", "pro"], &["rtx-pro-6000-blackwell-96gb"]),
    (&["6000", "blackwell"], &["rtx-pro-6000-blackwell-96gb"]),
    (&["a", "6000", "ada"], &["rtx-6000-ada-48gb"]),
    (&["mi", "300"], &["mi300x-192gb"]),
    (&["mi", "250"], &["mi250-64gb-gcd"]),
    (&["mi", "325"], &["mi325x-256gb"]),
    (&["mi", "355"], &["mi355x-288gb"]),
    (&["a", "770"], &["arc-a770-16gb"]),
    (&["b", "580"], &["arc-b580-12gb"]),
    (&["gv", "100"], &["quadro-gv100-32gb"]),
    (&["gaudi", "2"], &["gaudi2-96gb"]),
    (&["gaudi", "3"], &["gaudi3-128gb"]),
    (&["v", "5", "e"], &["tpu-v5e"]),
    (&["v", "5", "p"], &["tpu-v5p"]),
    (&["v", "6", "e"], &["tpu-v6e"]),
    (&["trillium"], &["tpu-v6e"]),
    (&["m", "3", "max"], &["apple-m3-max"]),
    (&["m", "3", "ultra"], &["apple-m3-ultra"]),
    (&["m", "1", "max"], &["apple-m1-max"]),
    (&["m", "1", "ultra"], &["apple-m1-ultra"]),
    (&["m", "2", "max"], &["apple-m2-max"]),
    (&["m", "2", "ultra"], &["apple-m2-ultra"]),
    (&["m", "4", "max"], &["apple-m4-max"]),
    (&["m", "4", "pro"], &["apple-m4-pro"]),
];

/// The card that is meant where memory and socket are left out.
const FIRST: &[&str] = &[
    "a100-sxm4-80gb",
    "a100-pcie-80gb",
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "p100-pcie-16gb",
];

/// Machines of clouds by the beginning of their names: the card and, if every size has as many, the number.
const MACHINES: &[(&str, &str, u64)] = &[
    ("p4de", "a100-sxm4-80gb", 8),
    ("p4d", "a100-sxm4-40gb", 8),
    ("p5en", "h200-sxm-141gb", 8),
    ("p5e", "h200-sxm-141gb", 8),
    ("p5", "h100-sxm5-80gb", 8),
    ("p3dn", "v100-sxm2-32gb", 8),
    ("p3", "v100-sxm2-16gb", 0),
    ("g4dn", "t4-16gb", 0),
    ("g5", "a10g-24gb", 0),
    ("g6e", "l40s-48gb", 0),
    ("g6", "l4-24gb", 0),
];

/// Cards that people have and the catalogue has not.
const UNKNOWN: &[&[&str]] = &[
    &["jetson"],
    &["orin"],
    &["dgx", "spark"],
    &["gb", "10"],
    &["k", "80"],
    &["m", "40"],
    &["m", "60"],
    &["strix", "halo"],
    &["cmp", "170", "hx"],
    &["rtx", "2050"],
    &["gtx", "970"],
    &["gtx", "980"],
    &["3050", "laptop"],
    &["mx", "150"],
];

/// A card found at a place.
struct Found {
    id: &'static str,
    start: usize,
    end: usize,
    usual: bool,
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
        if found.id.starts_with("tpu-") && cards.count.is_none() && sentence.gap(end) == Gap::Joined
        {
            if let Some(chips) = sentence
                .get(end)
                .filter(|atom| !atom.used)
                .and_then(super::atoms::Atom::whole)
            {
                cards.at = end;
                cards.count = Some((chips, sentence.words(end..end + 1)));
                sentence.use_up(end..end + 1);
            }
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
        for words in UNKNOWN {
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

/// `g5.12xlarge`: the card, how many of it, and the atom behind.
fn machine(sentence: &Sentence, at: usize) -> Option<(&'static str, u64, usize)> {
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
fn card(sentence: &Sentence, at: usize) -> Option<Found> {
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

fn plural(sentence: &Sentence, at: usize) -> bool {
    sentence.is(at, "s") && matches!(sentence.gap(at), Gap::Glued | Gap::Joined)
}

/// The number of cards beside a span, and the span with it.
fn count(sentence: &Sentence, start: usize, end: usize) -> (Option<u64>, std::ops::Range<usize>) {
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
    if let Some(times) = start.checked_sub(1).filter(|at| sentence.is(*at, "x")) {
        if let Some((at, count)) = times.checked_sub(1).and_then(|at| Some((at, whole(at)?))) {
            return (Some(count), at..end);
        }
    }
    // `H100 x8`, `h100x8`
    if sentence.is(end, "x") {
        if let Some(count) = whole(end + 1).filter(|_| !is_unit(sentence, end + 2)) {
            return (Some(count), start..end + 2);
        }
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
    // `lora 2 A100` counts cards, `lora 64 4090` is a rank.
    let few = sentence
        .get(at)
        .and_then(super::atoms::Atom::whole)
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

pub(super) const NUMBERS: &[(&str, u64)] = &[
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
