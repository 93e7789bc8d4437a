//! Peaks without the allocator: a folded trace added up as it stands, a group at a time.

use super::Phase;
use crate::list::Pieces;
use crate::tape::{Event, Group, Storage, Trace};

/// The most that is allocated at any instant, in storages as the allocator rounds them.
pub fn peak(trace: &Trace) -> u64 {
    let outline = outline(trace);
    outline.passes.max(outline.step)
}

/// What is allocated before and at most in the two halves of a training step, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Before the first step: weights, buffers, the optimizer's states.
    pub setup: u64,
    /// The batches of a step.
    pub inputs: u64,
    /// At most before the optimizer's turn.
    pub passes: u64,
    /// When the optimizer's turn comes.
    pub before_step: u64,
    /// At most in the optimizer's turn.
    pub step: u64,
    /// Micro-batches run in a step.
    pub micro_batches: u32,
}

pub fn outline(trace: &Trace) -> Outline {
    let mut sum = Sum {
        storages: &trace.storages,
        live: 0.0,
        peak: 0.0,
    };
    sum.follow(&trace.setup, &trace.setup_groups, 0);
    let bytes = |live: f64| live as u64;
    let mut outline = Outline {
        setup: bytes(sum.live),
        passes: bytes(sum.live),
        ..Outline::default()
    };
    let mut groups = &trace.groups[..];
    for (i, mark) in trace.phase_starts.iter().enumerate() {
        let end = trace
            .phase_starts
            .get(i + 1)
            .map_or(trace.events.len(), |next| next.at);
        // No group reaches from one phase into the next.
        let inside = groups.iter().take_while(|group| group.end <= end).count();
        let (here, later) = groups.split_at(inside);
        groups = later;
        if mark.phase == Phase::Optimizer {
            outline.before_step = outline.before_step.max(bytes(sum.live));
        }
        let before = sum.live;
        sum.peak = sum.live;
        let events = trace.events.get(mark.at..end).unwrap_or_default();
        sum.follow(events, here, mark.at);
        match mark.phase {
            Phase::Optimizer => outline.step = outline.step.max(bytes(sum.peak)),
            _ => outline.passes = outline.passes.max(bytes(sum.peak)),
        }
        if mark.step == 0 && mark.phase == Phase::Setup {
            outline.inputs = bytes(sum.live - before);
        }
        outline.micro_batches += u32::from(mark.step == 0 && mark.phase == Phase::Backward);
    }
    outline
}

struct Sum<'a> {
    storages: &'a Pieces<Storage>,
    live: f64,
    peak: f64,
}

impl Sum<'_> {
    /// Follows a stretch of events that begins at `start`, where groups count from.
    fn follow(&mut self, events: &[Event], groups: &[Group], start: usize) {
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
