//! The requests of a run's steps to the allocator: the first steps once, then a steady-state step.

use super::Category;
use super::engine::STEPS;
use super::expand::{ExpandedEvent, Expansion};
use crate::allocator::{Allocator, Oom};
use crate::tape::Trace;
use headroom_base::units::Bytes;

/// A request to the allocator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Malloc {
        handle: u32,
        bytes: u64,
    },
    Free(u32),
    /// Frees a storage of the previous step.
    FreeOld,
}

/// Sends the requests to the allocator, with handles counted from `first`. `left` are the handles that the previous step
/// left.
pub(super) fn replay(
    allocator: &mut Allocator,
    requests: &[Request],
    first: u32,
    left: &mut Vec<u32>,
) -> Result<(), Oom> {
    for request in requests {
        match *request {
            Request::Malloc { handle, bytes } => {
                allocator.malloc(first.saturating_add(handle), Bytes::new(bytes))?;
            }
            Request::Free(handle) => allocator.free(first.saturating_add(handle)),
            // All leftovers are freed at about the same time, as the loop rebinds its names.
            Request::FreeOld => left.drain(..).for_each(|handle| allocator.free(handle)),
        }
    }
    Ok(())
}

/// Everything up to the end of the first step or two.
#[derive(Debug, Default)]
pub(super) struct FirstSteps {
    pub events: Vec<Request>,
    /// How many of them precede the first step.
    pub setup: usize,
    pub handles: u32,
    /// Handles that the next step frees.
    pub left: Vec<u32>,
    /// Bytes of each weight.
    pub weights: Vec<u64>,
}

impl FirstSteps {
    pub(crate) fn of(trace: &Trace, steps: u32) -> Self {
        let expansion = Expansion::new(trace);
        let end = begins(trace, steps);
        let mut events = Vec::new();
        let mut ages = StepsSinceUse::default();
        let mut weights: Vec<(u32, u64)> = Vec::new();
        expansion.setup(|event| {
            ages.follow(trace, event, 0, &mut events);
            let storage = trace.storages.get(event.storage as usize);
            if event.is_free {
                weights.retain(|(handle, _)| *handle != event.handle);
            } else if let Some(storage) = storage
                && storage.category == Category::Parameters
            {
                weights.push((event.handle, storage.bytes));
            }
        });
        let setup = events.len();
        expansion.events(0, end, |event| ages.follow(trace, event, 1, &mut events));
        let handles = ages.handles;
        let mut left = Vec::new();
        expansion.events(end, begins(trace, steps + 1), |event| {
            if event.is_free && ages.of(event.handle) == 1 {
                left.push(event.handle);
            }
            ages.follow(trace, event, 2, &mut Vec::new());
        });
        Self {
            events,
            setup,
            handles,
            left,
            weights: weights.into_iter().map(|(_, bytes)| bytes).collect(),
        }
    }
}

/// A steady-state step: the last of the run.
#[derive(Debug)]
pub(super) struct SteadyStep {
    pub events: Vec<Request>,
    /// Handles that the next step frees.
    pub left: Vec<u32>,
    pub handles: u32,
}

impl SteadyStep {
    pub(crate) fn of(trace: &Trace) -> Self {
        let expansion = Expansion::new(trace);
        let last = begins(trace, STEPS - 1);
        let mut ages = StepsSinceUse::default();
        let mut events = Vec::new();
        expansion.setup(|event| ages.follow(trace, event, 1, &mut events));
        expansion.events(0, last, |event| ages.follow(trace, event, 1, &mut events));
        events.clear();
        expansion.events(last, trace.events.len(), |event| {
            ages.follow(trace, event, 2, &mut events);
        });
        let all = (0..).zip(&ages.of_handle);
        Self {
            events,
            left: all
                .filter(|(_, age)| **age == 2)
                .map(|(handle, _)| handle)
                .collect(),
            handles: ages.handles,
        }
    }
}

/// The event at which a step begins.
fn begins(trace: &Trace, step: u32) -> usize {
    let mark = trace.phase_starts.iter().find(|mark| mark.step == step);
    mark.map_or(trace.events.len(), |mark| mark.at)
}

/// How many steps ago each handle was allocated: 0 if it is not alive or older than the first step.
#[derive(Default)]
struct StepsSinceUse {
    of_handle: Vec<u8>,
    /// One more than the highest handle.
    handles: u32,
}

impl StepsSinceUse {
    fn of(&self, handle: u32) -> u8 {
        self.of_handle.get(handle as usize).copied().unwrap_or(0)
    }

    /// Records an event of step `age`: freeing a storage of another step is `FreeOld`.
    fn follow(
        &mut self,
        trace: &Trace,
        event: ExpandedEvent,
        age: u8,
        requests: &mut Vec<Request>,
    ) {
        let Some(storage) = trace.storages.get(event.storage as usize) else {
            return;
        };
        let place = event.handle as usize;
        if self.of_handle.len() <= place {
            self.of_handle.resize(place + 1, 0);
        }
        self.handles = self.handles.max(event.handle.saturating_add(1));
        let now = if event.is_free { 0 } else { age };
        let before = std::mem::replace(&mut self.of_handle[place], now);
        requests.push(if !event.is_free {
            Request::Malloc {
                handle: event.handle,
                bytes: storage.bytes,
            }
        } else if before == age || age < 2 {
            Request::Free(event.handle)
        } else {
            Request::FreeOld
        });
    }
}
