//! The smallest card on which a run completes its steps.

use std::ops::Range;

use super::expand::{ExpandedEvent, Expansion};
use super::{Peaks, alloc_conf, device, work};
use crate::allocator::{Allocator, Card, Request, Requests, Settings, smallest_card_between};
use crate::tape::Trace;
use headroom_base::list::push;
use headroom_base::units::Bytes;
use headroom_scenario::Case;

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

/// Runs of more events are not replayed again and again.
const MOST_EVENTS: usize = 1_000_000;

/// Replays the run on smaller and smaller cards; `None` if it runs on none.
pub(super) fn smallest(case: &Case, trace: &Trace, peaks: &Peaks) -> Option<SmallestCard> {
    let settings = alloc_conf::settings(&case.scenario.runtime);
    let overhead = device::overhead(case);
    let room = device::usable(case).map(|usable| usable - overhead);
    let count = Expansion::new(trace).count(0, trace.events.len());
    let plain = settings.memory_fraction.is_none() && !settings.expandable_segments;
    let allocator = if count > MOST_EVENTS && plain {
        sufficient(trace, peaks, &settings, room)
    } else {
        let allocated = Bytes::new(peaks.highest().map_or(0, |peak| peak.bytes));
        let reserved = Bytes::new(peaks.reserved);
        let requests = Events::of(trace);
        // The run has had its part of what an answer may take.
        let left = work::MOST_OF_ANSWER.saturating_sub(work::of(trace));
        smallest_card_between(&requests, &settings, room, allocated, reserved, left)?
    };
    let usable = allocator + overhead;
    Some(SmallestCard {
        allocator,
        usable,
        runs: device::usable(case).map(|available| usable <= available),
    })
}

/// Whether the run completes on the scenario's card although it would reserve more than that has: refused, the allocator gives
/// back what it does not use. `None` where that takes too long to find out at once.
pub(super) fn runs_when_refused(case: &Case, trace: &Trace, peaks: &Peaks) -> Option<bool> {
    const MOST_AT_ONCE: usize = 200_000;
    let room = device::usable(case)?
        .get()
        .checked_sub(device::overhead(case).get())?;
    if peaks.highest().is_some_and(|peak| peak.bytes > room) {
        return Some(false);
    }
    let count = Expansion::new(trace).count(0, trace.events.len());
    let settings = alloc_conf::settings(&case.scenario.runtime);
    (count <= MOST_AT_ONCE).then(|| runs_on(Bytes::new(room), trace, &settings))
}

/// A card that is not the smallest, and is told from one replay: one's own if the run completes on it, else one with as much as
/// the run reserves where nothing limits it.
fn sufficient(trace: &Trace, peaks: &Peaks, settings: &Settings, room: Option<Bytes>) -> Bytes {
    const MIB: u64 = 1 << 20;
    let reserved = Bytes::mib(peaks.reserved.div_ceil(MIB));
    let allocated = peaks.highest().map_or(0, |peak| peak.bytes);
    let own = room.map(|room| Bytes::mib(room.get() / MIB));
    let tight = own.filter(|own| (allocated..reserved.get()).contains(&own.get()));
    match tight {
        Some(own) if runs_on(own, trace, settings) => own,
        _ => reserved,
    }
}

/// Whether the run completes where the allocator may take so much.
fn runs_on(room: Bytes, trace: &Trace, settings: &Settings) -> bool {
    let mut allocator = Allocator::new(settings.clone(), Card::usable(room));
    let mut runs = true;
    let expansion = Expansion::new(trace);
    let mut follow = |event: ExpandedEvent| {
        if event.is_free && runs {
            allocator.free(event.handle);
        } else if runs {
            let bytes = Bytes::new(event.bytes);
            runs = allocator
                .malloc_on(event.handle, bytes, event.stream)
                .is_ok();
        }
    };
    expansion.setup(&mut follow);
    expansion.events(0, trace.events.len(), &mut follow);
    runs
}

/// Where each phase begins among all requests, and where the last ends; none where no phase was copied.
fn places(trace: &Trace, expansion: &Expansion, setup: usize) -> Vec<usize> {
    if trace.copied.is_empty() {
        return Vec::new();
    }
    let begin = trace.phase_starts.iter().map(|mark| mark.at);
    let (mut before, mut place) = (0, setup);
    begin
        .chain([trace.events.len()])
        .map(|at| {
            place += expansion.count(before, at);
            before = at;
            place
        })
        .collect()
}

/// The run's events, to be replayed again and again. A run of many small steps has hundreds of thousands, so they are small, and
/// where no storage has copies they are the trace's own.
struct Events<'a> {
    trace: &'a Trace,
    /// Otherwise in eight bytes each: the handle, and the storage with a bit that says whether it is freed.
    expanded: Option<Vec<(u32, u32)>>,
    /// Of steps and micro-batches that were copied.
    repeats: Vec<Range<usize>>,
}

impl<'a> Events<'a> {
    const FREE: u32 = 1 << 31;

    fn of(trace: &'a Trace) -> Self {
        let expansion = Expansion::new(trace);
        let mut setup = trace.setup.len();
        let expanded = (!expansion.is_the_trace()).then(|| {
            let mut all = Vec::new();
            let small = |event: ExpandedEvent| {
                let free = if event.is_free { Self::FREE } else { 0 };
                (event.handle, event.storage | free)
            };
            expansion.setup(&mut |event| push(&mut all, small(event)));
            setup = all.len();
            let end = trace.events.len();
            expansion.events(0, end, &mut |event| push(&mut all, small(event)));
            all
        });
        let places = places(trace, &expansion, setup);
        let place = |phase: usize| places.get(phase).copied().unwrap_or(usize::MAX);
        let copied = trace.copied.iter();
        let repeats = copied.map(|copied| place(copied.from)..place(copied.from + copied.count));
        Self {
            repeats: repeats.collect(),
            trace,
            expanded,
        }
    }

    /// The handle of an event, and the storage that it allocates, if it does.
    fn event(&self, at: usize) -> Option<(u32, Option<u32>)> {
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
}

impl Requests for Events<'_> {
    fn count(&self) -> usize {
        match &self.expanded {
            Some(all) => all.len(),
            None => self.trace.setup.len() + self.trace.events.len(),
        }
    }

    fn get(&self, at: usize) -> Option<Request> {
        let (handle, allocated) = self.event(at)?;
        let known = allocated.and_then(|storage| self.trace.storages.get(storage as usize));
        Some(match known {
            Some(known) => Request::Malloc {
                handle,
                bytes: Bytes::new(known.bytes),
                stream: known.stream.number().into(),
            },
            None => Request::Free { handle },
        })
    }

    fn repeats(&self) -> &[Range<usize>] {
        &self.repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::smallest_card;
    use crate::estimate::Prediction;
    use headroom_scenario::{Scenario, settings};

    #[test]
    fn one_replay_tells_whether_a_long_run_completes() {
        let prediction = Prediction::new(Scenario::default());
        let steps = prediction.first_steps().unwrap();
        let (trace, settings) = (&steps.run.trace, Settings::default());
        let smallest = smallest_card(&Events::of(trace), &settings, None).unwrap();
        let all = Bytes::new(steps.peaks.reserved).round_up(1 << 20);
        assert!(smallest < all, "{smallest} {all}");
        for (room, expected) in [
            (smallest - Bytes::mib(1), all),
            (smallest, smallest),
            (all, all),
            (all * 2, all),
        ] {
            let found = sufficient(trace, &steps.peaks, &settings, Some(room));
            assert_eq!(found, expected, "{room}");
        }
    }

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

    #[test]
    fn a_refused_allocator_gives_back_what_it_does_not_use() {
        #[track_caller]
        fn check(changes: &[(&str, &str)], expected: Option<bool>) {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let prediction = Prediction::new(scenario);
            assert_eq!(prediction.runs_when_refused(), expected);
            let card = prediction.smallest_card().unwrap().unwrap();
            assert_eq!(card.runs, expected.or(Some(true)));
        }
        let sharded = [("model", "llama-3.1-8b"), ("gpus", "8"), ("par", "fsdp2")];
        let on = |gpu| [&sharded[..], &[("gpu", gpu)]].concat();
        check(&on("h100-sxm5"), Some(true));
        check(&on("rtx-4090"), Some(false));
        check(&on("h200-sxm"), None);
    }
}
