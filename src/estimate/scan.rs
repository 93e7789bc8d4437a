//! Reads a trace: how much is allocated when, and what is alive then.

use std::collections::BTreeMap;

use super::{Category, Instant, Phase};
use crate::tape::{Block, Event, Mark, Scope, Trace};
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
}

/// Peaks by phase, and what exists before the first step. Bytes are rounded as the allocator rounds.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    pub setup: u64,
    pub phases: Vec<PhasePeak>,
}

impl Peaks {
    pub fn of(trace: &Trace) -> Self {
        let mut live = 0;
        for event in &trace.setup {
            live = after(live, *event, &trace.blocks);
        }
        let setup = live;
        let mut phases = Vec::with_capacity(trace.marks.len());
        for (i, mark) in trace.marks.iter().enumerate() {
            let end = trace
                .marks
                .get(i + 1)
                .map_or(trace.events.len(), |next| next.at);
            let mut peak = PhasePeak {
                mark: *mark,
                at: mark.at,
                bytes: live,
                end: live,
            };
            for (at, event) in trace.events.iter().enumerate().take(end).skip(mark.at) {
                live = after(live, *event, &trace.blocks);
                if live > peak.bytes {
                    peak.bytes = live;
                    peak.at = at + 1;
                }
            }
            peak.end = live;
            phases.push(peak);
        }
        Self { setup, phases }
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

fn after(live: u64, event: Event, blocks: &[Block]) -> u64 {
    let bytes = blocks.get(event.block() as usize).map_or(0, Block::rounded);
    if event.is_free() {
        live.saturating_sub(bytes)
    } else {
        live.saturating_add(bytes)
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
pub fn timeline(trace: &Trace, peaks: &Peaks, step: u32) -> Vec<Instant> {
    const INSTANTS: usize = 400;
    let mut live = peaks.setup;
    let mut marks = trace.marks.iter().peekable();
    let mut now = (0, Phase::Setup);
    let in_step = |mark: &Mark| mark.step == step;
    let begin = trace
        .marks
        .iter()
        .find(|mark| in_step(mark))
        .map_or(0, |mark| mark.at);
    let end = trace
        .marks
        .iter()
        .find(|mark| mark.step > step)
        .map_or(trace.events.len(), |mark| mark.at);
    let stretch = (end.saturating_sub(begin) / INSTANTS).max(1);
    let mut all: Vec<Instant> = Vec::with_capacity(INSTANTS + 8);
    let mut left = 0;
    for (at, event) in trace.events.iter().enumerate() {
        while let Some(mark) = marks.next_if(|mark| mark.at <= at) {
            now = (mark.step, mark.phase);
            left = 0;
        }
        live = after(live, *event, &trace.blocks);
        if now.0 != step {
            continue;
        }
        let bytes = Bytes::new(live);
        match all.last_mut() {
            Some(last) if left > 0 => last.bytes = last.bytes.max(bytes),
            _ => {
                all.push(Instant {
                    phase: now.1,
                    bytes,
                });
                left = stretch;
            }
        }
        left -= 1;
    }
    all
}
