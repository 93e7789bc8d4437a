//! The memory timeline of `torch.profiler` (`export_memory_timeline`, as JSON or raw JSON): the most that was allocated, and
//! for what.

use headroom_base::document::Document;
use headroom_base::document::json;
use headroom_base::units::Bytes;

/// The profiler's categories of memory, in the order of its files (`_CATEGORY_TO_COLORS` in
/// torch/profiler/_memory_profiler.py).
const CATEGORIES: [&str; 8] = [
    "parameters",
    "optimizer states",
    "inputs",
    "temporaries",
    "activations",
    "gradients",
    "autograd's details",
    "other",
];

/// A timeline at its highest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    pub peak: Bytes,
    /// Its parts, in the profiler's order.
    pub parts: Vec<(&'static str, Bytes)>,
}

impl Timeline {
    /// The timeline in a text; `None` for any other file.
    pub fn read(text: &str) -> Option<Self> {
        if !text.trim_start().starts_with('[') {
            return None;
        }
        let Document::List(items) = json::read(text).ok()? else {
            return None;
        };
        match &items[..] {
            [Document::List(times), Document::List(sizes)] if times.len() == sizes.len() => {
                Self::highest(sizes.iter().map(row))
            }
            events => Self::of_events(events),
        }
    }

    /// Of rows with a size for each category, behind a zero.
    fn highest(rows: impl Iterator<Item = Option<[i64; 8]>>) -> Option<Self> {
        let mut best = Self::default();
        for row in rows {
            let found = Self::of(row?);
            if found.peak > best.peak {
                best = found;
            }
        }
        (best.peak > Bytes::ZERO).then_some(best)
    }

    /// Of events: time, action, bytes that come or go, category.
    fn of_events(events: &[Document]) -> Option<Self> {
        let mut now = [0_i64; 8];
        let mut total = 0_i64;
        let (mut most, mut best) = (0, now);
        for event in events {
            let Document::List(event) = event else {
                return None;
            };
            let [
                Document::Int(_),
                Document::Int(1..=4),
                Document::Int(bytes),
                Document::Int(category),
            ] = event[..]
            else {
                return None;
            };
            let bytes = i64::try_from(bytes).ok()?;
            let place = now.get_mut(usize::try_from(category).ok()?)?;
            *place = place.saturating_add(bytes);
            total = total.saturating_add(bytes);
            if total > most {
                (most, best) = (total, now);
            }
        }
        (most > 0).then(|| Self::of(best))
    }

    fn of(sizes: [i64; 8]) -> Self {
        let bytes = sizes.map(|size| Bytes::new(u64::try_from(size).unwrap_or(0)));
        Self {
            peak: bytes.into_iter().sum(),
            parts: CATEGORIES.into_iter().zip(bytes).collect(),
        }
    }
}

fn row(row: &Document) -> Option<[i64; 8]> {
    let Document::List(row) = row else {
        return None;
    };
    let (Document::Int(0), sizes) = row.split_first()? else {
        return None;
    };
    let mut found = [0; 8];
    if sizes.len() != found.len() {
        return None;
    }
    for (place, size) in found.iter_mut().zip(sizes) {
        let Document::Int(size) = size else {
            return None;
        };
        *place = i64::try_from(*size).ok()?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_timeline_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<(u64, &[(&str, u64)])>) {
            let found = Timeline::read(text);
            let found = found.map(|timeline| {
                let used = timeline
                    .parts
                    .iter()
                    .filter(|(_, bytes)| *bytes > Bytes::ZERO);
                let used: Vec<_> = used.map(|(name, bytes)| (*name, bytes.get())).collect();
                (timeline.peak.get(), used)
            });
            assert_eq!(found, expected.map(|(peak, parts)| (peak, parts.to_vec())));
        }
        check(
            "[[1, 2, 3], [[0, 5, 0, 1, 0, 0, 0, 0, 0], [0, 5, 0, 1, 0, 9, 0, 0, 2], [0, 5, 10, 0, 0, 0, 0, 0, 0]]]",
            Some((
                17,
                &[
                    ("parameters", 5),
                    ("inputs", 1),
                    ("activations", 9),
                    ("other", 2),
                ],
            )),
        );
        // A change of category moves bytes from one to the other.
        check(
            "[[-1, 1, 5, 0], [10, 2, 8, 3], [20, 3, -8, 3], [20, 3, 8, 4], [30, 2, 4, 5], [40, 4, -8, 4]]",
            Some((
                17,
                &[("parameters", 5), ("activations", 8), ("gradients", 4)],
            )),
        );
        for text in [
            "",
            "[]",
            "[[1],[2]]",
            "[[],[]]",
            "{}",
            "[[1,9,1,1]]",
            "[[1,1,1,99]]",
            "[[1,1,99999999999999999999,1]]",
        ] {
            check(text, None);
        }
    }
}
