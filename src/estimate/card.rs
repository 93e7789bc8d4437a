//! The smallest card on which a run completes its steps.

use super::expand::{ExpandedEvent, Expansion};
use super::{alloc_conf, device};
use crate::allocator::{Request, smallest_card};
use crate::list::push;
use crate::scenario::Case;
use crate::tape::Trace;
use crate::units::Bytes;

/// The least memory the run can do with: less than it would reserve if it could, because an allocator that is refused frees
/// its unused blocks and tries again, synchronizing the device each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallestCard {
    /// Available to the allocator.
    pub allocator: Bytes,
    /// With the CUDA context and libraries: what the driver must leave to programs.
    pub usable: Bytes,
    /// Whether the scenario's card has that much; `None` if its memory is not known.
    pub runs: Option<bool>,
}

/// Replays the run on smaller and smaller cards; `None` if it runs on none.
pub(super) fn smallest(case: &Case, trace: &Trace) -> Option<SmallestCard> {
    let settings = alloc_conf::settings(&case.scenario.runtime);
    let overhead = device::overhead(case);
    let room = device::usable(case).map(|usable| usable - overhead);
    let allocator = smallest_card(Events::of(trace).requests(), &settings, room)?;
    let usable = allocator + overhead;
    Some(SmallestCard {
        allocator,
        usable,
        runs: device::usable(case).map(|available| usable <= available),
    })
}

/// The run's events, to be replayed again and again. A run of many small steps has hundreds of thousands, so they are small, and
/// where no storage has copies they are the trace's own.
struct Events<'a> {
    trace: &'a Trace,
    /// Otherwise in eight bytes each: the handle, and the storage with a bit that says whether it is freed.
    expanded: Option<Vec<(u32, u32)>>,
}

impl<'a> Events<'a> {
    const FREE: u32 = 1 << 31;

    fn of(trace: &'a Trace) -> Self {
        let expansion = Expansion::new(trace);
        let expanded = (!expansion.is_the_trace()).then(|| {
            let mut all = Vec::new();
            let mut add = |event: ExpandedEvent| {
                let free = if event.is_free { Self::FREE } else { 0 };
                push(&mut all, (event.handle, event.storage | free));
            };
            expansion.setup(&mut add);
            expansion.events(0, trace.events.len(), &mut add);
            all
        });
        Self { trace, expanded }
    }

    fn len(&self) -> usize {
        match &self.expanded {
            Some(all) => all.len(),
            None => self.trace.setup.len() + self.trace.events.len(),
        }
    }

    /// The handle of an event, and the storage that it allocates, if it does.
    fn get(&self, at: usize) -> Option<(u32, Option<u32>)> {
        if let Some(all) = &self.expanded {
            let (handle, storage) = *all.get(at)?;
            return Some((handle, (storage & Self::FREE == 0).then_some(storage)));
        }
        let setup = &self.trace.setup;
        let event = match at.checked_sub(setup.len()) {
            Some(at) => self.trace.events.get(at),
            None => setup.get(at),
        }?;
        let storage = event.storage();
        Some((storage, (!event.is_free()).then_some(storage)))
    }

    /// What the run requests of the allocator.
    fn requests(&self) -> impl ExactSizeIterator<Item = Request> + Clone {
        (0..self.len()).map(|at| {
            let (handle, allocated) = self.get(at).unwrap_or((u32::MAX, None));
            let known = allocated.and_then(|storage| self.trace.storages.get(storage as usize));
            match known {
                Some(known) => Request::Malloc {
                    handle,
                    bytes: Bytes::new(known.bytes),
                    stream: known.stream.number().into(),
                },
                None => Request::Free { handle },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::estimate::Prediction;
    use crate::scenario::{Scenario, settings};

    #[test]
    fn a_card_lies_between_what_is_allocated_and_what_would_be_reserved() {
        for changes in [
            &[][..],
            &[("ckpt", "layers")],
            &[("expandable", "on")],
            &[("eval_mb", "32"), ("mb", "2")],
            &[("model", "llama-3.2-1b"), ("mb", "1"), ("seq", "512")],
        ] {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let prediction = Prediction::new(scenario);
            let all = prediction.estimate().unwrap();
            let card = prediction.smallest_card().unwrap().unwrap();
            // Without unsplit slack, which a tight card may not allow: a block of it is below 1 MiB a request.
            let least = all.allocated.expected.scale(0.97);
            assert!(
                least <= card.allocator
                    && card.allocator <= all.reserved.expected.round_up(1 << 20),
                "{changes:?} {card:?}"
            );
            assert!(card.usable > card.allocator);
            assert!(card.runs == Some(true) || all.fits == Some(false));
        }
    }
}
