//! The peak without the allocator: a folded trace added up as it stands, a group at a time.

use crate::tape::{Block, Event, Group, Trace};

/// The most that is allocated at any instant, in blocks as the allocator rounds them.
pub fn peak(trace: &Trace) -> u64 {
    let mut sum = Sum {
        blocks: &trace.blocks,
        live: 0,
        peak: 0,
    };
    sum.follow(&trace.setup, &trace.setup_groups);
    sum.peak = sum.live;
    sum.follow(&trace.events, &trace.groups);
    u64::try_from(sum.peak).unwrap_or(0)
}

struct Sum<'a> {
    blocks: &'a [Block],
    live: i128,
    peak: i128,
}

impl Sum<'_> {
    fn follow(&mut self, events: &[Event], groups: &[Group]) {
        let mut at = 0;
        for group in groups {
            self.plain(events.get(at..group.start).unwrap_or_default());
            self.repeated(
                events.get(group.start..group.end).unwrap_or_default(),
                group.times,
            );
            at = group.end;
        }
        self.plain(events.get(at..).unwrap_or_default());
    }

    /// Outside groups an event is of all copies at once; only what a group will carry on is made singly.
    fn plain(&mut self, events: &[Event]) {
        for event in events {
            let Some(block) = self.blocks.get(event.block() as usize) else {
                continue;
            };
            let bytes = i128::from(block.rounded());
            let copies = i128::from(block.copies);
            if event.is_free() {
                self.live -= bytes * copies;
            } else {
                self.live += if block.carried { bytes } else { bytes * copies };
                self.peak = self.peak.max(self.live);
            }
        }
    }

    /// Every repeat changes what is allocated by the same amount, so the highest is in the first or in the last.
    fn repeated(&mut self, events: &[Event], times: u32) {
        let (mut change, mut highest) = (0, 0);
        for event in events {
            let bytes = self
                .blocks
                .get(event.block() as usize)
                .map_or(0, |block| i128::from(block.rounded()));
            change += if event.is_free() { -bytes } else { bytes };
            highest = highest.max(change);
        }
        let times = i128::from(times);
        self.peak = self
            .peak
            .max(self.live + highest + change.max(0) * (times - 1));
        self.live += change * times;
    }
}
