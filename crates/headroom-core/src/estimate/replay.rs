//! The requests of a run's steps to the allocator: the first steps once, then a steady-state step.

use super::Category;
use super::engine::STEPS;
use super::expand::{ExpandedEvent, Expansion};
use crate::allocator::{Allocator, Oom};
use crate::tape::{Phase, Trace};
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
    /// How many precede the last one's backward, and the end of the outputs of its forward.
    pub backward: usize,
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
        let middle = begins_backward(trace, steps.saturating_sub(1)).min(end);
        expansion.events(0, middle, |event| ages.follow(trace, event, 1, &mut events));
        let backward = before_outputs_go(&events);
        expansion.events(middle, end, |event| {
            ages.follow(trace, event, 1, &mut events);
        });
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
            backward,
            handles,
            left,
            weights: weights.into_iter().map(|(_, bytes)| bytes).collect(),
        }
    }
}

/// A steady-state step: the last of the run. Or the evaluation of a batch after it.
#[derive(Debug)]
pub(super) struct SteadyStep {
    pub events: Vec<Request>,
    /// How many of them precede backward, and the end of the outputs of forward.
    pub backward: usize,
    /// Handles that the next step frees.
    pub left: Vec<u32>,
    pub handles: u32,
}

impl SteadyStep {
    pub(crate) fn of(trace: &Trace) -> Self {
        let last = STEPS - 1;
        let (begins, ends) = (begins(trace, last), trace.events.len());
        Self::between(trace, begins, begins_backward(trace, last), ends)
    }

    /// The evaluation at the end of the run, up to its second mark; what it keeps is what it leaves.
    pub(crate) fn of_evaluation(trace: &Trace) -> Self {
        let marks = trace.phase_starts.iter();
        let mut marks = marks.filter(|mark| mark.phase == Phase::Evaluation);
        let all = trace.events.len();
        let mut next = || marks.next().map_or(all, |mark| mark.at);
        let begins = next();
        Self::between(trace, begins, all, next())
    }

    fn between(trace: &Trace, begins: usize, backward: usize, ends: usize) -> Self {
        let expansion = Expansion::new(trace);
        let mut ages = StepsSinceUse::default();
        let mut events = Vec::new();
        expansion.setup(|event| ages.follow(trace, event, 1, &mut events));
        expansion.events(0, begins, |event| ages.follow(trace, event, 1, &mut events));
        events.clear();
        let backward = backward.clamp(begins, ends);
        expansion.events(begins, backward, |event| {
            ages.follow(trace, event, 2, &mut events);
        });
        let before = before_outputs_go(&events);
        expansion.events(backward, ends, |event| {
            ages.follow(trace, event, 2, &mut events);
        });
        let all = (0..).zip(&ages.of_handle);
        Self {
            events,
            backward: before,
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

/// How many requests precede the end of the model's outputs, with which a forward ends where nothing else is made of its loss.
fn before_outputs_go(forward: &[Request]) -> usize {
    let ends_so = matches!(forward.last(), Some(Request::Free(_)));
    forward.len() - usize::from(ends_so)
}

/// The event at which a step's first backward begins.
fn begins_backward(trace: &Trace, step: u32) -> usize {
    let mut marks = trace.phase_starts.iter();
    let mark = marks.find(|mark| mark.step == step && mark.phase == Phase::Backward);
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
