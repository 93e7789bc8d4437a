//! Reads a trace: how much is allocated when, and what is alive then.

use std::collections::BTreeMap;

use super::{Category, Instant, Phase};
use crate::allocator::{Allocator, Card, Settings};
use crate::tape::{Event, Mark, Scope, Trace, rounded};
use crate::units::Bytes;

/// The peaks of one phase of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePeak {
    pub mark: Mark,
    /// The event after which the most is allocated.
    pub at: usize,
    pub bytes: u64,
    /// Allocated when the phase ends.
    pub end: u64,
    /// How many events it has.
    pub events: usize,
}

/// Peaks by phase, and what exists before the first step.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    pub setup: u64,
    pub phases: Vec<PhasePeak>,
    /// What the allocator holds at most.
    pub reserved: u64,
    /// Allocated after each event.
    curve: Vec<u64>,
}

impl Peaks {
    /// Follows the events through the caching allocator: blocks are what it hands out.
    pub fn replayed(trace: &Trace, settings: &Settings) -> Self {
        let mut allocator = Allocator::new(settings.clone(), Card::UNLIMITED);
        let mut peaks = Self::following(trace, |event, bytes| {
            if event.is_free() {
                allocator.free(event.block());
            } else {
                // A card without limit never refuses.
                let _ = allocator.malloc(event.block(), Bytes::new(bytes));
            }
            allocator.counters().allocated.current.get()
        });
        peaks.reserved = allocator.counters().reserved.peak.get();
        peaks
    }

    /// Adds up blocks as the allocator rounds them, without placing them anywhere.
    pub fn summed(trace: &Trace) -> Self {
        let mut live: u64 = 0;
        let mut peaks = Self::following(trace, |event, bytes| {
            let bytes = rounded(bytes);
            live = if event.is_free() {
                live.saturating_sub(bytes)
            } else {
                live.saturating_add(bytes)
            };
            live
        });
        peaks.reserved = peaks.highest().map_or(0, |peak| peak.bytes);
        peaks
    }

    fn following(trace: &Trace, mut follow: impl FnMut(Event, u64) -> u64) -> Self {
        let mut follow = |event: Event| {
            follow(
                event,
                trace
                    .blocks
                    .get(event.block() as usize)
                    .map_or(0, |block| block.bytes),
            )
        };
        let mut live = 0;
        for event in &trace.setup {
            live = follow(*event);
        }
        let setup = live;
        let mut phases = Vec::with_capacity(trace.marks.len());
        let mut curve = Vec::with_capacity(trace.events.len());
        for (i, mark) in trace.marks.iter().enumerate() {
            let end = trace
                .marks
                .get(i + 1)
                .map_or(trace.events.len(), |next| next.at);
            let events = end.saturating_sub(mark.at);
            let mut peak = PhasePeak {
                mark: *mark,
                at: mark.at,
                bytes: live,
                end: live,
                events,
            };
            for (at, event) in trace.events.iter().enumerate().take(end).skip(mark.at) {
                live = follow(*event);
                curve.push(live);
                if live > peak.bytes {
                    peak.bytes = live;
                    peak.at = at + 1;
                }
            }
            peak.end = live;
            phases.push(peak);
        }
        Self {
            setup,
            phases,
            reserved: 0,
            curve,
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
}

/// The blocks alive after the first `at` events.
pub fn alive_at(trace: &Trace, at: usize) -> Vec<u32> {
    let mut alive = vec![false; trace.blocks.len()];
    for event in trace.setup.iter().chain(trace.events.iter().take(at)) {
        if let Some(place) = alive.get_mut(event.block() as usize) {
            *place = !event.is_free();
        }
    }
    (0..)
        .zip(alive)
        .filter_map(|(block, alive)| alive.then_some(block))
        .collect()
}

/// Bytes of `blocks` by category.
pub fn by_category(trace: &Trace, blocks: &[u32]) -> BTreeMap<Category, u64> {
    let mut all = BTreeMap::new();
    for block in blocks
        .iter()
        .filter_map(|&block| trace.blocks.get(block as usize))
    {
        let bytes: &mut u64 = all.entry(block.category).or_default();
        *bytes = bytes.saturating_add(block.rounded());
    }
    all
}

/// Bytes of `blocks` by the module they belong to.
pub fn by_module(trace: &Trace, blocks: &[u32]) -> BTreeMap<String, u64> {
    let mut by_scope: BTreeMap<Scope, u64> = BTreeMap::new();
    for block in blocks
        .iter()
        .filter_map(|&block| trace.blocks.get(block as usize))
    {
        let bytes = by_scope.entry(block.scope).or_default();
        *bytes = bytes.saturating_add(block.rounded());
    }
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

/// The course of one step, thinned: of each stretch of events the highest, so that no peak is lost.
pub fn timeline(peaks: &Peaks, step: u32) -> Vec<Instant> {
    const INSTANTS: usize = 400;
    let of_step = |phase: &&PhasePeak| phase.mark.step == step;
    let total: usize = peaks
        .phases
        .iter()
        .filter(of_step)
        .map(|phase| phase.events)
        .sum();
    let stretch = total.div_ceil(INSTANTS).max(1);
    peaks
        .phases
        .iter()
        .filter(of_step)
        .flat_map(|phase| {
            let curve = peaks.curve.iter().skip(phase.mark.at).take(phase.events);
            let curve: Vec<u64> = curve.copied().collect();
            let high = |part: &[u64]| Instant {
                phase: phase.mark.phase,
                bytes: Bytes::new(part.iter().copied().max().unwrap_or(0)),
            };
            curve.chunks(stretch).map(high).collect::<Vec<_>>()
        })
        .collect()
}
