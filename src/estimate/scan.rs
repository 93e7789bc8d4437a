//! Reads a trace: how much is allocated when, and what is alive then.

use super::expand::{Expansion, Single};
use super::{Category, Instant, Phase};
use crate::allocator::{Allocator, Card, Settings};
use crate::order::Map;
use crate::tape::{Block, Mark, Scope, Trace};
use crate::units::Bytes;

/// Into how many instants the course of a step is thinned, about.
const INSTANTS: usize = 400;

/// The peaks of one phase of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePeak {
    pub mark: Mark,
    /// How many events of the phase have happened when the most is allocated.
    pub at: usize,
    pub bytes: u64,
    /// Allocated when the phase ends.
    pub end: u64,
    /// Where the phase ends among the recorded events.
    pub until: usize,
}

/// Peaks by phase, and what exists before the first step.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    pub setup: u64,
    pub phases: Vec<PhasePeak>,
    /// What the allocator holds at most.
    pub reserved: u64,
    /// The course of the last step, thinned: of each stretch of events the highest, so that no peak is lost.
    course: Vec<Point>,
}

/// The highest of a stretch of events, the earliest where several are equal.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Its place among the phases.
    phase: usize,
    /// How many events of the phase have happened.
    at: usize,
    bytes: u64,
}

impl Peaks {
    /// Follows the events through the caching allocator: blocks are what it hands out.
    pub fn replayed(trace: &Trace, settings: &Settings) -> Self {
        let expansion = Expansion::brief(trace);
        let mut allocator = Allocator::new(settings.clone(), Card::UNLIMITED);
        let mut live = 0;
        expansion.setup(|event| live = follow(&mut allocator, event).1);
        let setup = live;
        let last_step = trace
            .marks
            .iter()
            .filter(|mark| mark.phase == Phase::Optimizer)
            .map(|mark| mark.step)
            .max();
        let ends = trace.marks.iter().skip(1).map(|next| next.at);
        let ends: Vec<usize> = ends.chain([trace.events.len()]).collect();
        let drawn = |mark: &Mark| Some(mark.step) == last_step;
        let last = trace
            .marks
            .iter()
            .zip(&ends)
            .filter(|(mark, _)| drawn(mark));
        let events: usize = last.map(|(mark, end)| expansion.count(mark.at, *end)).sum();
        let stretch = events.div_ceil(INSTANTS).max(1);
        let mut phases = Vec::with_capacity(trace.marks.len());
        let mut course: Vec<Point> = Vec::with_capacity(INSTANTS + 8);
        for (phase, (mark, &until)) in trace.marks.iter().zip(&ends).enumerate() {
            let mut peak = PhasePeak {
                mark: *mark,
                at: 0,
                bytes: live,
                end: live,
                until,
            };
            let drawn = drawn(mark);
            let mut happened = 0;
            // The stretch that is under way: its highest, and the event with which it ends.
            let mut point = Point {
                phase,
                at: 1,
                bytes: 0,
            };
            let mut closes = if drawn { stretch } else { usize::MAX };
            let mut happens = |now: u64| {
                happened += 1;
                if now > point.bytes {
                    (point.at, point.bytes) = (happened, now);
                    if now > peak.bytes {
                        (peak.at, peak.bytes) = (happened, now);
                    }
                }
                if happened == closes {
                    course.push(point);
                    (point.at, point.bytes) = (happened + 1, 0);
                    closes += stretch;
                }
            };
            expansion.events(mark.at, until, |event| {
                let (top, after) = follow(&mut allocator, event);
                happens(top);
                if event.goes {
                    happens(after);
                }
                live = after;
            });
            if drawn && closes != happened + stretch {
                course.push(point);
            }
            peak.end = live;
            phases.push(peak);
        }
        Self {
            setup,
            phases,
            reserved: allocator.counters().reserved.peak.get(),
            course,
        }
    }

    /// The highest of all, the earliest where several are equal.
    pub fn highest(&self) -> Option<&PhasePeak> {
        self.phases
            .iter()
            .reduce(|best, next| if next.bytes > best.bytes { next } else { best })
    }

    pub fn in_phase(&self, step: u32, phase: Phase) -> Option<&PhasePeak> {
        self.phases
            .iter()
            .filter(|peak| peak.mark.step == step && peak.mark.phase == phase)
            .reduce(|best, next| if next.bytes > best.bytes { next } else { best })
    }

    /// Where among the events an instant of the timeline lies.
    pub fn instant(&self, index: usize) -> Option<PhasePeak> {
        let Point { phase, at, bytes } = *self.course.get(index)?;
        let phase = *self.phases.get(phase)?;
        Some(PhasePeak { at, bytes, ..phase })
    }

    /// The course of the last step, an instant a stretch of events.
    pub fn timeline(&self) -> Vec<Instant> {
        let shown = |point: &Point| {
            let phase = self.phases.get(point.phase)?.mark.phase;
            let bytes = Bytes::new(point.bytes);
            Some(Instant { phase, bytes })
        };
        self.course.iter().filter_map(shown).collect()
    }
}

/// How much is allocated when an event has happened, and when what goes at once has gone.
#[inline]
fn follow(allocator: &mut Allocator, event: Single) -> (u64, u64) {
    let bytes = Bytes::new(event.bytes);
    // A card without limit never refuses.
    let top = if event.is_free {
        allocator.free(event.handle);
        None
    } else if event.goes {
        allocator.pass(event.handle, bytes).ok()
    } else {
        let _ = allocator.malloc(event.handle, bytes);
        None
    };
    let now = allocator.counters().allocated.current.get();
    (top.unwrap_or(now), now)
}

/// Blocks alive at an instant, each with how many copies of it there are.
pub type Alive = Vec<(u32, u64)>;

/// What is alive at a peak.
pub fn alive_at(trace: &Trace, peak: &PhasePeak) -> Alive {
    let expansion = Expansion::new(trace);
    let mut copies = expansion.copies_after(peak.mark.at, peak.until, peak.at);
    settle(trace, &mut copies);
    (0..)
        .zip(copies)
        .filter_map(|(block, copies)| {
            u64::try_from(copies)
                .ok()
                .filter(|n| *n > 0)
                .map(|n| (block, n))
        })
        .collect()
}

/// A row's repeats pass one block on under two names; what one name owes the other pays.
fn settle(trace: &Trace, copies: &mut [i64]) {
    for (received, out) in trace.groups.iter().flat_map(|group| &group.carries) {
        let (received, out) = (*received as usize, *out as usize);
        let (Some(&a), Some(&b)) = (copies.get(received), copies.get(out)) else {
            continue;
        };
        if a < 0 && b > 0 {
            copies[received] = 0;
            copies[out] = a + b;
        } else if b < 0 && a > 0 {
            copies[out] = 0;
            copies[received] = a + b;
        }
    }
}

/// Bytes of what is alive by category.
pub fn by_category(trace: &Trace, alive: &Alive) -> Map<Category, u64> {
    sums(trace, alive, |block| block.category)
}

/// Bytes of what is alive by the module it belongs to.
pub fn by_module(trace: &Trace, alive: &Alive) -> Map<String, u64> {
    let by_scope: Map<Scope, u64> = sums(trace, alive, |block| block.scope);
    let mut all = Map::new();
    for (scope, bytes) in by_scope {
        let path = trace.path(scope);
        let name = if path.is_empty() {
            "outside the model".to_string()
        } else {
            path
        };
        let sum: &mut u64 = all.or_default(name);
        *sum = sum.saturating_add(bytes);
    }
    all
}

fn sums<K: Ord>(trace: &Trace, alive: &Alive, key: impl Fn(&Block) -> K) -> Map<K, u64> {
    let mut all = Map::new();
    for (block, copies) in alive {
        let Some(block) = trace.blocks.get(*block as usize) else {
            continue;
        };
        let sum: &mut u64 = all.or_default(key(block));
        *sum = sum.saturating_add(block.rounded().saturating_mul(*copies));
    }
    all
}
