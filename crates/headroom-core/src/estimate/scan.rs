//! Reads a trace: allocated memory at each instant, and the storages that are alive.

use super::expand::{EventRange, ExpandedEvent, Expansion};
use super::{Category, Instant, Phase};
use std::collections::BTreeMap;
use std::ops::Range;

use crate::allocator::{Allocator, Card, Repeats, Settings};
use crate::tape::{PhaseStart, Scope, Storage, Trace};
use headroom_base::units::Bytes;

/// About how many instants the timeline of a step is downsampled to.
const INSTANTS: usize = 400;

/// The peaks of one phase of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePeak {
    /// The start of the phase in the trace.
    pub mark: PhaseStart,
    /// How many events of the phase have happened at its peak.
    pub at: usize,
    /// Bytes allocated at the peak, counted in blocks as the allocator rounds them.
    pub bytes: u64,
    /// Allocated when the phase ends.
    pub end: u64,
    /// The recorded event at which the phase ends.
    pub until: usize,
}

/// Peaks by phase, and what exists before the first step.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    /// Bytes allocated before the first step.
    pub setup: u64,
    /// One for each start of a phase in the trace, in the order in which they run.
    pub phases: Vec<PhasePeak>,
    /// The most that the allocator reserves.
    pub reserved: u64,
    /// The last step's timeline, downsampled to the highest point of each interval, so that no peak is lost.
    points: Vec<Point>,
}

/// The highest point of an interval of events, the earliest of equals.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// The index of its phase.
    phase: usize,
    /// How many events of the phase have happened.
    at: usize,
    bytes: u64,
}

impl Peaks {
    /// Replays the events through the caching allocator, and counts the blocks it hands out.
    pub fn replayed(trace: &Trace, settings: &Settings) -> Self {
        let expansion = Expansion::with_transient(trace);
        let mut watch = PeakTracker::new(settings);
        let follow = |watch: &mut PeakTracker, range: &EventRange| {
            expansion.visit(range, &mut |event| watch.event(event));
        };
        follow(&mut watch, &expansion.before());
        let setup = watch.live;
        let last_step = trace
            .phase_starts
            .iter()
            .filter(|mark| mark.phase == Phase::Optimizer)
            .map(|mark| mark.step)
            .max();
        let ends = trace.phase_starts.iter().skip(1).map(|next| next.at);
        let ends: Vec<usize> = ends.chain([trace.events.len()]).collect();
        let in_last = |mark: &PhaseStart| Some(mark.step) == last_step;
        let last = trace
            .phase_starts
            .iter()
            .zip(&ends)
            .filter(|(mark, _)| in_last(mark));
        let events: usize = last.map(|(mark, end)| expansion.count(mark.at, *end)).sum();
        watch.interval = events.div_ceil(INSTANTS).max(1);
        watch.points.reserve_exact(INSTANTS + 8);
        let copied = trace.copied.iter();
        let copied: Vec<Range<usize>> = copied.map(|it| it.from..it.from + it.count).collect();
        let mut repeats = Repeats::new(&copied);
        // The timeline also covers the steps that the last may be a copy of.
        let of_copy = |phases: &Range<usize>| {
            let copy = trace.phase_starts.get(phases.start)?;
            let original = trace.phase_starts.get(phases.start - phases.len())?;
            (in_last(copy) && !in_last(original)).then_some(original.step)
        };
        let shown_too = copied.iter().find_map(of_copy);
        let drawn = |mark: &PhaseStart| in_last(mark) || Some(mark.step) == shown_too;
        let mut phases: Vec<PhasePeak> = Vec::with_capacity(trace.phase_starts.len());
        while let Some((mark, &until)) = trace
            .phase_starts
            .get(phases.len())
            .zip(ends.get(phases.len()))
        {
            let phase = phases.len();
            if let Some(to) = repeats.skip(phase, &watch.allocator) {
                let count = to - phase;
                watch.again(phase - count..phase);
                let alike = (phase..to).filter_map(|phase| {
                    let (mark, until) = (*trace.phase_starts.get(phase)?, *ends.get(phase)?);
                    Some((mark, until, *phases.get(phase - count)?))
                });
                let alike: Vec<PhasePeak> = alike
                    .map(|(mark, until, peak)| PhasePeak {
                        mark,
                        until,
                        ..peak
                    })
                    .collect();
                phases.extend(alike);
                if phases.len() == to {
                    continue;
                }
            }
            let drawn = drawn(mark);
            watch.begin(phase, drawn);
            follow(&mut watch, &expansion.between(mark.at, until));
            watch.end(drawn);
            phases.push(PhasePeak {
                mark: *mark,
                at: watch.peak.at,
                bytes: watch.peak.bytes,
                end: watch.live,
                until,
            });
        }
        watch
            .points
            .retain(|point| phases.get(point.phase).is_some_and(|it| in_last(&it.mark)));
        Self {
            setup,
            phases,
            reserved: watch.allocator.counters().reserved.peak.get(),
            points: watch.points,
        }
    }

    /// The highest peak, the earliest of equals.
    pub fn highest(&self) -> Option<&PhasePeak> {
        self.phases
            .iter()
            .reduce(|best, next| if next.bytes > best.bytes { next } else { best })
    }

    pub(crate) fn in_phase(&self, step: u32, phase: Phase) -> Option<&PhasePeak> {
        self.phases
            .iter()
            .filter(|peak| peak.mark.step == step && peak.mark.phase == phase)
            .reduce(|best, next| if next.bytes > best.bytes { next } else { best })
    }

    /// The position of an instant of the timeline among the events.
    pub fn instant(&self, index: usize) -> Option<PhasePeak> {
        let Point { phase, at, bytes } = *self.points.get(index)?;
        let phase = *self.phases.get(phase)?;
        Some(PhasePeak { at, bytes, ..phase })
    }

    /// For each instant of the timeline its phase, the number of events of the phase so far, and the allocated bytes.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let place = |point: &Point| (point.phase, point.at, point.bytes);
        self.points.iter().map(place)
    }

    /// The last step's timeline, one instant for each interval of events.
    pub fn timeline(&self) -> Vec<Instant> {
        let shown = |point: &Point| {
            let phase = self.phases.get(point.phase)?.mark.phase;
            let bytes = Bytes::new(point.bytes);
            Some(Instant { phase, bytes })
        };
        self.points.iter().filter_map(shown).collect()
    }
}

/// Follows the events phase by phase.
struct PeakTracker {
    allocator: Allocator,
    live: u64,
    /// Events of the phase so far.
    happened: usize,
    /// The highest point of the phase, and of the current interval.
    peak: Point,
    point: Point,
    /// The event with which the interval ends, and how many events one has.
    closes: usize,
    interval: usize,
    points: Vec<Point>,
}

impl PeakTracker {
    fn new(settings: &Settings) -> Self {
        let start = Point {
            phase: 0,
            at: 0,
            bytes: 0,
        };
        Self {
            allocator: Allocator::new(settings.clone(), Card::UNLIMITED),
            live: 0,
            happened: 0,
            peak: start,
            point: start,
            closes: usize::MAX,
            interval: 1,
            points: Vec::new(),
        }
    }

    /// The timeline keeps only phases that are shown.
    fn begin(&mut self, phase: usize, drawn: bool) {
        self.happened = 0;
        self.peak = Point {
            phase,
            at: 0,
            bytes: self.live,
        };
        self.point = Point {
            phase,
            at: 1,
            bytes: 0,
        };
        self.closes = if drawn { self.interval } else { usize::MAX };
    }

    fn end(&mut self, drawn: bool) {
        if drawn && self.closes != self.happened + self.interval {
            self.points.push(self.point);
        }
    }

    /// The next phases have the same points as these.
    fn again(&mut self, phases: Range<usize>) {
        let drawn = self.points.iter();
        let drawn = drawn.filter(|point| phases.contains(&point.phase));
        let again: Vec<Point> = drawn
            .map(|point| Point {
                phase: point.phase + phases.len(),
                ..*point
            })
            .collect();
        self.points.extend(again);
    }

    /// An unlimited GPU never runs out of memory.
    #[inline]
    fn event(&mut self, event: ExpandedEvent) {
        let bytes = Bytes::new(event.bytes);
        if event.is_free {
            self.allocator.free(event.handle);
        } else if event.transient && event.stream == 0 {
            let top = self.allocator.malloc_and_free(event.handle, bytes);
            self.happens(top.unwrap_or(self.live));
        } else {
            let _ = self.allocator.malloc_on(event.handle, bytes, event.stream);
            if event.transient {
                self.happens(self.allocator.counters().allocated.current.get());
                self.allocator.free(event.handle);
            }
        }
        self.live = self.allocator.counters().allocated.current.get();
        self.happens(self.live);
    }

    #[inline]
    fn happens(&mut self, now: u64) {
        self.happened += 1;
        if now > self.point.bytes {
            (self.point.at, self.point.bytes) = (self.happened, now);
            if now > self.peak.bytes {
                (self.peak.at, self.peak.bytes) = (self.happened, now);
            }
        }
        if self.happened == self.closes {
            self.points.push(self.point);
            (self.point.at, self.point.bytes) = (self.happened + 1, 0);
            self.closes += self.interval;
        }
    }
}

/// Storages alive at an instant, with their numbers of copies.
pub type Alive = Vec<(u32, u64)>;

/// Storages alive at a peak.
pub fn alive_at(trace: &Trace, peak: &PhasePeak) -> Alive {
    let expansion = Expansion::new(trace);
    let mut copies = expansion.copies_after(peak.mark.at, peak.until, peak.at);
    settle(trace, &mut copies);
    (0..)
        .zip(copies)
        .filter_map(|(storage, copies)| {
            u64::try_from(copies)
                .ok()
                .filter(|n| *n > 0)
                .map(|n| (storage, n))
        })
        .collect()
}

/// A storage carried between repeats has two indices: their counts are added up under one.
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

/// Live bytes by category.
pub fn by_category(trace: &Trace, alive: &Alive) -> BTreeMap<Category, u64> {
    sums(trace, alive, |storage| storage.category)
}

/// Live bytes by module.
pub fn by_module(trace: &Trace, alive: &Alive) -> BTreeMap<String, u64> {
    let by_scope: BTreeMap<Scope, u64> = sums(trace, alive, |storage| trace.source(storage).scope);
    let mut all = BTreeMap::new();
    for (scope, bytes) in by_scope {
        let path = trace.path(scope);
        let name = if path.is_empty() {
            "outside the model".to_string()
        } else {
            path
        };
        let sum: &mut u64 = all.entry(name).or_default();
        *sum = sum.saturating_add(bytes);
    }
    all
}

fn sums<K: Ord>(trace: &Trace, alive: &Alive, key: impl Fn(&Storage) -> K) -> BTreeMap<K, u64> {
    let mut all = BTreeMap::new();
    for (storage, copies) in alive {
        let Some(storage) = trace.storages.get(*storage as usize) else {
            continue;
        };
        let sum: &mut u64 = all.entry(key(storage)).or_default();
        *sum = sum.saturating_add(storage.rounded().saturating_mul(*copies));
    }
    all
}
