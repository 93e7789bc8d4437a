//! What a run's steps ask of the allocator, and what they leave: the beginning once, then any step like all later ones.

use super::Category;
use super::expand::{Expansion, Single};
use super::steps::SHOWN;
use crate::allocator::{Allocator, Oom};
use crate::tape::Trace;
use crate::units::Bytes;

#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    Made {
        handle: u32,
        bytes: u64,
    },
    Freed(u32),
    /// Something that the step before had made goes.
    Old,
}

pub(super) fn replay(
    allocator: &mut Allocator,
    events: &[Happening],
    names: u32,
    left: &mut Vec<u32>,
) -> Result<(), Oom> {
    for event in events {
        match *event {
            Happening::Made { handle, bytes } => {
                allocator.malloc(names.saturating_add(handle), Bytes::new(bytes))?;
            }
            Happening::Freed(handle) => allocator.free(names.saturating_add(handle)),
            // All that is left goes at about the same time: a loop binds its names again.
            Happening::Old => left.drain(..).for_each(|handle| allocator.free(handle)),
        }
    }
    Ok(())
}

/// All up to the end of the first step or two.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) events: Vec<Happening>,
    /// How many of them are before the first step.
    pub(super) setup: usize,
    pub(super) handles: u32,
    /// Bytes of each weight.
    pub(super) weights: Vec<u64>,
}

impl Start {
    /// And what it leaves that the next step lets go.
    pub(super) fn of(trace: &Trace, steps: u32) -> (Self, Vec<u32>) {
        let expansion = Expansion::new(trace);
        let second = begins(trace, steps);
        let mut events = Vec::new();
        let mut made = Made::default();
        let mut weights: Vec<(u32, u64)> = Vec::new();
        expansion.setup(|it| {
            made.follow(trace, it, 0, &mut events);
            let block = trace.blocks.get(it.block as usize);
            if it.is_free {
                weights.retain(|(handle, _)| *handle != it.handle);
            } else if let Some(block) = block
                && block.category == Category::Parameters
            {
                weights.push((it.handle, block.bytes));
            }
        });
        let weights = weights.into_iter().map(|(_, bytes)| bytes).collect();
        let before_first = made.handles;
        let setup = events.len();
        expansion.events(0, second, |it| made.follow(trace, it, 1, &mut events));
        let handles = made.handles.max(before_first);
        let mut left = Vec::new();
        expansion.events(second, begins(trace, steps + 1), |it| {
            if it.is_free && made.of(it.handle) == 1 {
                left.push(it.handle);
            }
            made.follow(trace, it, 2, &mut Vec::new());
        });
        let start = Self {
            events,
            setup,
            handles,
            weights,
        };
        (start, left)
    }
}

/// A step like all later ones: the last that the run shows.
#[derive(Debug)]
pub(super) struct Steady {
    pub(super) events: Vec<Happening>,
    /// What it leaves to the next.
    pub(super) left: Vec<u32>,
    pub(super) handles: u32,
}

impl Steady {
    pub(super) fn of(trace: &Trace) -> Self {
        let expansion = Expansion::new(trace);
        let last = begins(trace, SHOWN - 1);
        let mut made = Made::default();
        let mut events = Vec::new();
        expansion.setup(|it| made.follow(trace, it, 1, &mut events));
        expansion.events(0, last, |it| made.follow(trace, it, 1, &mut events));
        events.clear();
        expansion.events(last, trace.events.len(), |it| {
            made.follow(trace, it, 2, &mut events);
        });
        let all = made.ages.iter().zip(0..);
        Self {
            events,
            left: all.filter(|(age, _)| **age == 2).map(|it| it.1).collect(),
            handles: made.handles,
        }
    }
}

/// Where a step begins among the events.
fn begins(trace: &Trace, step: u32) -> usize {
    let mark = trace.marks.iter().find(|mark| mark.step == step);
    mark.map_or(trace.events.len(), |mark| mark.at)
}

/// When what is alive was made: 0 is not alive, or from before the first step.
#[derive(Default)]
struct Made {
    ages: Vec<u8>,
    pub(super) handles: u32,
}

impl Made {
    fn of(&self, handle: u32) -> u8 {
        self.ages.get(handle as usize).copied().unwrap_or(0)
    }

    /// An event of the given age: a free of what is of another age is one of something old.
    fn follow(&mut self, trace: &Trace, it: Single, age: u8, events: &mut Vec<Happening>) {
        let Some(block) = trace.blocks.get(it.block as usize) else {
            return;
        };
        let place = it.handle as usize;
        if self.ages.len() <= place {
            self.ages.resize(place + 1, 0);
        }
        self.handles = self.handles.max(it.handle.saturating_add(1));
        let before = std::mem::replace(&mut self.ages[place], if it.is_free { 0 } else { age });
        events.push(match (it.is_free, before == age) {
            (false, _) => Happening::Made {
                handle: it.handle,
                bytes: block.bytes,
            },
            (true, true) => Happening::Freed(it.handle),
            (true, false) if age < 2 => Happening::Freed(it.handle),
            (true, false) => Happening::Old,
        });
    }
}
