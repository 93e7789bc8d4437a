//! Memory that a program printed while it ran, in the forms of PyTorch's own snippets, mmcv, Detectron2, DeepSpeed,
//! Megatron, torchtitan, ms-swift, fairseq and plain scripts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drift::{Drift, drift};
use headroom_base::units::Bytes;

/// What a printed figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Allocated at that moment.
    Allocated,
    /// The device's memory in use.
    Used,
    /// The most so far, which mostly never falls.
    Peak,
    /// Reserved by the allocator.
    Reserved,
}

/// Figures of one kind in the order in which they were printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryLines {
    pub counted: Counted,
    pub values: Vec<Bytes>,
}

/// How printed memory developed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trend {
    /// It grew all the time, from the first figure to the last.
    Growing {
        from: Bytes,
        to: Bytes,
    },
    /// It rose once, by this much.
    Rose {
        by: Bytes,
    },
    Level {
        at: Bytes,
    },
}

/// The fewest figures that show a trend.
const FEWEST: usize = 5;
/// The most figures that are kept of one series.
const MOST: usize = 100_000;

impl MemoryLines {
    /// The longest series of a text, allocated memory before the others; `None` if there are too few figures.
    pub fn parse(text: &str) -> Option<Self> {
        let mut all: BTreeMap<(Counted, String), Vec<Bytes>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.len() < 2_000) {
            for (counted, label, bytes) in figures(line) {
                let known = all.len();
                let series = all.entry((counted, label));
                // A hostile text has a label of its own on each line.
                if known < 1_000
                    || matches!(series, std::collections::btree_map::Entry::Occupied(_))
                {
                    let series = series.or_default();
                    if series.len() < MOST {
                        series.push(bytes);
                    }
                }
            }
        }
        let longest = all
            .values()
            .map(Vec::len)
            .max()
            .filter(|most| *most >= FEWEST)?;
        // Several quantities are often printed on each line; the first kind says the most.
        let (key, values) = all
            .into_iter()
            .find(|(_, values)| values.len() * 2 >= longest)?;
        Some(Self {
            counted: key.0,
            values,
        })
    }

    pub fn trend(&self) -> Option<Trend> {
        /// Smaller differences, as a share of the memory, are noise.
        const NOTICEABLE: f64 = 0.03;
        let (first, last) = (self.values.first()?, self.values.last()?);
        let highest = self.values.iter().max()?;
        let least = highest.scale(NOTICEABLE);
        let points: Vec<(i64, u64)> = (0..)
            .zip(self.values.iter().map(|value| value.get()))
            .collect();
        Some(match drift(&points, least) {
            // A maximum of random batches rises ever more slowly.
            Drift::Steady(_) if self.counted == Counted::Peak && self.slows_down() => {
                Trend::Level { at: *highest }
            }
            Drift::Steady(_) => Trend::Growing {
                from: *first,
                to: *last,
            },
            Drift::Jump { by, .. } => Trend::Rose { by },
            Drift::None => Trend::Level { at: *highest },
        })
    }

    /// Whether the second half of the figures rises by less than half of what the first does.
    fn slows_down(&self) -> bool {
        let at = |index: usize| self.values.get(index).copied().unwrap_or_default();
        let (half, last) = (self.values.len() / 2, self.values.len() - 1);
        (at(last) - at(half)).scale(2.0) < at(half) - at(0)
    }
}

/// Lines with other meanings: errors, tables, a probe's JSON.
const OTHERS: &[&str] = &[
    "tried to allocate",
    "total capacity",
    "peak_allocated\"",
    "out of memory",
    "shared memory",
];
const MEMORY: &[&str] = &["mem", "alloc", "reserv", "cached", "vram", "ma "];

/// The figures of a line, each with its kind and its label.
fn figures(line: &str) -> Vec<(Counted, String, Bytes)> {
    let lowered = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lowered.contains(word));
    if !has(MEMORY) || has(OTHERS) || lowered.trim_start().starts_with('|') {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut rest = lowered.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (label, number) = rest.split_at(at);
        let end = number
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(number.len());
        let (digits, after) = number.split_at(end);
        // A digit inside a word, as in "epoch_3" or "A100", is no figure.
        let inside = label.ends_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !inside && let Some((counted, bytes)) = figure(label, digits, after) {
            let label: String = label.chars().filter(char::is_ascii_alphabetic).collect();
            let label = label
                .get(label.len().saturating_sub(24)..)
                .unwrap_or_default()
                .to_string();
            found.push((counted, label, bytes));
        }
        rest = after;
    }
    found
}

fn figure(label: &str, digits: &str, after: &str) -> Option<(Counted, Bytes)> {
    let number: f64 = digits.parse().ok()?;
    // "3.1 of 24 GiB in use": a total.
    if label.trim_end().ends_with(" of") {
        return None;
    }
    // A label ends where another figure's unit or a comma stands.
    let label = label.rsplit([',', ';', '|', '}']).next().unwrap_or(label);
    let after_word = after.trim_start_matches(' ');
    let unit: String = after_word
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let own = power(&unit);
    let following = if own.is_some() {
        after_word.get(unit.len()..).unwrap_or_default()
    } else {
        after_word
    };
    let following = following
        .split([',', ';', '|', '('])
        .next()
        .unwrap_or_default();
    let in_label = ["(gib)", "(gb)", "_gb", "_gib", "gb)"]
        .iter()
        .any(|unit| label.contains(unit))
        .then_some(30);
    let in_label = in_label.or_else(|| {
        ["(mib)", "(mb)", "_mb", "[mib]"]
            .iter()
            .any(|unit| label.contains(unit))
            .then_some(20)
    });
    // "Memory: 3.1 GB allocated" says after the figure what it counts.
    let after = own.and_then(|_| counted(following));
    let counted = match (counted(label), after) {
        (Some(Counted::Used) | None, Some(after)) => after,
        (before, _) => before?,
    };
    // Without a unit, mmcv's and Detectron2's figures are MB.
    let bare = number >= 100.0
        && digits.len() >= 3
        && (label.contains("memory: ") || label.contains("max_mem"));
    // Scripts that divide by 2³⁰ print decimals.
    let divided = digits.contains('.') && number < 2_000.0 && label.contains("memory is ");
    let power = own
        .or(in_label)
        .or(bare.then_some(20))
        .or(divided.then_some(30))?;
    let bytes = number * (1_u64 << power) as f64;
    (bytes.is_finite() && bytes < (1_u64 << 50) as f64).then(|| (counted, Bytes::new(bytes as u64)))
}

/// The power of two of a unit.
fn power(unit: &str) -> Option<u32> {
    match unit {
        "g" | "gb" | "gib" => Some(30),
        "m" | "mb" | "mib" => Some(20),
        "bytes" => Some(0),
        _ => None,
    }
}

/// The kind that words name; limits, totals and host memory are none.
fn counted(words: &str) -> Option<Counted> {
    const PEAK: &[&str] = &[
        "max_mem",
        "max mem",
        "peak",
        "max_ma",
        "max alloc",
        "max_alloc",
        "maximum",
        "at most",
        "max reserved",
        "max_ca",
    ];
    const NONE: &[&str] = &[
        "total",
        "free",
        "avail",
        "cpu",
        "ram",
        "host",
        "virtual",
        "disk",
        "size",
        "limit",
        "capacity",
        "mem_usage_percent",
    ];
    let has = |known: &[&str]| known.iter().any(|word| words.contains(word));
    if has(NONE) && !words.contains("vram") {
        return None;
    }
    if has(PEAK) {
        return Some(Counted::Peak);
    }
    if words.contains("alloc") || words.trim_end().ends_with(" ma") || words.trim_end() == "ma" {
        return Some(Counted::Allocated);
    }
    if has(&["reserv", "cached", "cache"]) || words.trim_end().ends_with(" ca") {
        return Some(Counted::Reserved);
    }
    has(&["mem", "vram", "in use", "used"]).then_some(Counted::Used)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of ten lines, of which each has the next figure.
    #[track_caller]
    fn check(line: impl Fn(f64) -> String, counted: Counted, grows: bool) {
        for growing in [true, false] {
            let text: Vec<String> = (0..12)
                .map(|step| {
                    line(
                        10.0 + if growing {
                            f64::from(step)
                        } else {
                            f64::from(step % 2) * 0.1
                        },
                    )
                })
                .collect();
            let found = MemoryLines::parse(&text.join("\n")).expect("figures");
            assert_eq!(
                (found.counted, found.values.len()),
                (counted, 12),
                "{}",
                text[0]
            );
            let trend = found.trend().unwrap();
            assert_eq!(
                matches!(trend, Trend::Growing { .. }),
                growing && grows,
                "{} {trend:?}",
                text[0]
            );
        }
    }

    #[test]
    fn logs_of_every_form_are_read() {
        use Counted::{Allocated, Peak, Used};
        check(
            |gb| format!("GPU Memory - Allocated: {gb:.2}GB, Cached: 20.00GB"),
            Allocated,
            true,
        );
        check(
            |gb| format!("Memory: {gb:.2}GB allocated, 21.00GB reserved"),
            Allocated,
            true,
        );
        check(
            |gb| format!("GPU Memory Allocated: {gb:.2} GB"),
            Allocated,
            true,
        );
        check(
            |gb| format!("reserved memory is 30.5977 and allocated memory is {gb:.4}"),
            Allocated,
            true,
        );
        check(
            |gb| format!("MA {gb:.2} GB         Max_MA 30.0 GB         CA 31.0 GB"),
            Allocated,
            true,
        );
        check(
            |gb| format!("eta: 1:00 time: 0.5 memory: {:.0} loss: 1.2", gb * 1000.0),
            Used,
            true,
        );
        check(
            |gb| format!("eta: 0:10 iter: 19 lr: 0.1 max_mem: {:.0}M", gb * 1000.0),
            Peak,
            true,
        );
        check(
            |gb| format!("step: 10 loss: 2.1 memory: {gb:.2}GiB(32.52%) tps: 900"),
            Used,
            true,
        );
        check(
            |gb| format!("{{'loss': 2.1, 'memory(GiB)': {gb:.2}, 'epoch': 0.1}}"),
            Used,
            true,
        );
        check(
            |gb| {
                format!(
                    "epoch 3: {gb:.2} GiB allocated at most, 22.00 GiB reserved, 23.00 of 31.00 GiB of the card in use"
                )
            },
            Peak,
            true,
        );
    }

    #[test]
    fn a_maximum_that_rises_ever_more_slowly_is_no_growth() {
        let line = |step: i32| format!("max_mem: {:.0}M", 20_000.0 - 8_000.0 / f64::from(step + 1));
        let text: Vec<String> = (0..30).map(line).collect();
        let found = MemoryLines::parse(&text.join("\n")).unwrap();
        assert!(
            matches!(found.trend(), Some(Trend::Level { .. })),
            "{found:?}"
        );
        assert_eq!(
            MemoryLines::parse("epoch 3 loss 0.1\nmemory is short"),
            None
        );
    }
}
