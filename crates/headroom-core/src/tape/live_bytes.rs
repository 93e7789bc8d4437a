//! Sums over a folded trace, a group at a time.

use super::{Event, Group, Storage, Tape};
use headroom_base::list::ChunkedVec;

impl Tape {
    /// How many events have been recorded.
    pub fn events(&self) -> usize {
        self.0.trace.borrow().events.len()
    }

    /// By how much more is allocated than before this event.
    pub fn grown_since(&self, event: usize) -> u64 {
        let trace = self.0.trace.borrow();
        let groups = trace.groups.partition_point(|group| group.start < event);
        let mut sum = LiveBytes::of(&trace.storages);
        sum.follow(
            trace.events.get(event..).unwrap_or_default(),
            trace.groups.get(groups..).unwrap_or_default(),
            event,
        );
        sum.live as u64
    }
}

/// What is allocated as events go by, and the most of it, in storages as the allocator rounds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveBytes<'a> {
    storages: &'a ChunkedVec<Storage>,
    pub live: f64,
    pub peak: f64,
}

impl<'a> LiveBytes<'a> {
    pub(crate) const fn of(storages: &'a ChunkedVec<Storage>) -> Self {
        Self {
            storages,
            live: 0.0,
            peak: 0.0,
        }
    }

    /// Follows a stretch of events that begins at `start`, where groups count from.
    pub(crate) fn follow(&mut self, events: &[Event], groups: &[Group], start: usize) {
        let mut at = 0;
        for group in groups {
            let (first, end) = (
                group.start.saturating_sub(start),
                group.end.saturating_sub(start),
            );
            self.plain(events.get(at..first).unwrap_or_default());
            self.repeated(events.get(first..end).unwrap_or_default(), group.times);
            at = end;
        }
        self.plain(events.get(at..).unwrap_or_default());
    }

    /// Outside groups an event is of all copies at once; only what a group will carry on is made singly.
    fn plain(&mut self, events: &[Event]) {
        for event in events {
            let Some(storage) = self.storages.get(event.storage() as usize) else {
                continue;
            };
            if event.is_free() {
                self.live -= rounded(storage) * f64::from(storage.copies);
            } else {
                let copies = if storage.carried { 1 } else { storage.copies };
                self.live += rounded(storage) * f64::from(copies);
                if self.live > self.peak {
                    self.peak = self.live;
                }
            }
        }
    }

    /// Every repeat changes what is allocated by the same amount, so the highest is in the first or in the last.
    fn repeated(&mut self, events: &[Event], times: u32) {
        let (mut change, mut highest) = (0.0_f64, 0.0_f64);
        for event in events {
            let Some(storage) = self.storages.get(event.storage() as usize) else {
                continue;
            };
            if event.is_free() {
                change -= rounded(storage);
            } else {
                change += rounded(storage);
                highest = highest.max(change);
            }
        }
        let times = f64::from(times);
        let before_last = change.max(0.0) * (times - 1.0);
        self.peak = self.peak.max(self.live + highest + before_last);
        self.live += change * times;
    }
}

/// Multiples of 512, and so their sums, are exact in an `f64` up to 2^62 bytes, and what no card holds does not wrap around.
fn rounded(storage: &Storage) -> f64 {
    storage.rounded() as f64
}
