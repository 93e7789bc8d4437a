//! The timeline of a step by what its memory is used for.

use super::expand::Expansion;
use super::scan::Peaks;
use super::{Category, Part};
use crate::tape::Trace;
use headroom_base::units::Bytes;

/// What is allocated at each instant of the timeline, by category; the parts of an instant sum to its total.
pub(super) fn of(trace: &Trace, peaks: &Peaks) -> Vec<Vec<Part<Category>>> {
    let expansion = Expansion::new(trace);
    let mut walk = Walk {
        trace,
        alive: Vec::new(),
        now: [None; CATEGORIES],
    };
    expansion.setup(|event| walk.event(event.handle, event.storage, event.is_free));
    let mut timeline = Vec::new();
    let mut places = peaks.places().peekable();
    for (phase, peak) in peaks.phases.iter().enumerate() {
        let mut happened = 0;
        expansion.events(peak.mark.at, peak.until, |event| {
            walk.event(event.handle, event.storage, event.is_free);
            happened += 1;
            while let Some((_, _, bytes)) =
                places.next_if(|(of, at, _)| *of == phase && *at <= happened)
            {
                timeline.push(walk.parts(bytes));
            }
        });
        // An instant without events shows the end of the phase.
        while let Some((_, _, bytes)) = places.next_if(|(of, ..)| *of == phase) {
            timeline.push(walk.parts(bytes));
        }
    }
    timeline
}

const CATEGORIES: usize = Category::Rounding as usize + 1;

/// What is alive as events are followed one by one. There are up to millions of events, so that each is little work.
struct Walk<'a> {
    trace: &'a Trace,
    /// The category and size of each live handle.
    alive: Vec<Option<(Category, u64)>>,
    /// The bytes of each category that has been allocated, by its place in the enum.
    now: [Option<(Category, u64)>; CATEGORIES],
}

impl Walk<'_> {
    fn change(&mut self, category: Category, by: impl Fn(u64) -> u64) {
        if let Some(place) = self.now.get_mut(category as usize) {
            let before = place.map_or(0, |(_, bytes)| bytes);
            *place = Some((category, by(before)));
        }
    }

    fn event(&mut self, handle: u32, storage: u32, is_free: bool) {
        // A storage without a handle has no size either.
        if handle == u32::MAX {
            return;
        }
        let handle = handle as usize;
        if is_free {
            let freed = self.alive.get_mut(handle).and_then(Option::take);
            if let Some((category, bytes)) = freed {
                self.change(category, |sum| sum.saturating_sub(bytes));
            }
            return;
        }
        let Some(storage) = self.trace.storages.get(storage as usize) else {
            return;
        };
        if self.alive.len() <= handle {
            self.alive.resize(handle + 1, None);
        }
        if let Some(place) = self.alive.get_mut(handle) {
            *place = Some((storage.category, storage.rounded()));
        }
        let bytes = storage.rounded();
        self.change(storage.category, |sum| sum.saturating_add(bytes));
    }

    /// What the allocator hands out beyond the requested sizes is rounding.
    fn parts(&self, allocated: u64) -> Vec<Part<Category>> {
        let all = self.now.iter().flatten();
        let known: u64 = all.clone().map(|(_, bytes)| bytes).sum();
        let mut parts: Vec<_> = all
            .filter(|(category, bytes)| *bytes > 0 && *category != Category::Rounding)
            .map(|(category, bytes)| Part {
                what: *category,
                bytes: Bytes::new(*bytes),
            })
            .collect();
        let counted: u64 = parts.iter().map(|part| part.bytes.get()).sum();
        let rest = allocated.max(known).saturating_sub(counted);
        if rest > 0 {
            parts.push(Part {
                what: Category::Rounding,
                bytes: Bytes::new(rest),
            });
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use crate::estimate::Prediction;
    use headroom_scenario::{Scenario, settings};

    #[test]
    fn the_parts_of_an_instant_sum_to_what_the_timeline_shows() {
        #[track_caller]
        fn check(changes: &[(&str, &str)]) {
            let mut scenario = Scenario::default();
            for (path, value) in changes {
                settings::set(&mut scenario, path, value).unwrap();
            }
            let prediction = Prediction::new(scenario);
            let by_category = prediction.timeline_by_category().unwrap();
            let timeline = &prediction.estimate().unwrap().timeline;
            assert_eq!(by_category.len(), timeline.len());
            for (at, (parts, instant)) in by_category.iter().zip(timeline).enumerate() {
                let sum: u64 = parts.iter().map(|part| part.bytes.get()).sum();
                let shown = instant.bytes.get();
                // A split of a large block may be handed out whole.
                let near = sum.abs_diff(shown) <= shown / 100 + (1 << 21);
                assert!(near, "{changes:?} instant {at}: {sum} of {shown}");
            }
        }
        check(&[]);
        check(&[("accum", "3")]);
        check(&[
            ("model.id", "llama-3.2-1b"),
            ("lora", "on"),
            ("ckpt", "layers"),
        ]);
        check(&[("model.id", "resnet-50"), ("seq", "1")]);
    }
}
