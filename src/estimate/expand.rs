//! A folded trace, event by event: every repeat of every group with storages of its own.

use crate::allocator::Stream;
use crate::tape::{Event, Group, Storage, Trace};

/// One event of the unfolded course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single {
    /// Names this very copy of the storage.
    pub handle: u32,
    pub storage: u32,
    /// What is asked for.
    pub bytes: u64,
    pub is_free: bool,
    /// The number of the stream in whose pool it lies.
    pub stream: Stream,
    /// It is freed at once: the event that says so is not told.
    pub goes: bool,
}

/// Gives every copy of every storage a number, and tells the events one by one.
#[derive(Debug)]
pub struct Expansion<'a> {
    trace: &'a Trace,
    /// The first handle of each storage.
    base: Vec<u32>,
    handles: u32,
    /// What is made and freed at once is told in one.
    briefly: bool,
}

impl<'a> Expansion<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let mut handles: u32 = 0;
        let base = trace
            .storages
            .iter()
            .map(|storage| {
                let first = handles;
                handles = handles.saturating_add(storage.copies);
                first
            })
            .collect();
        Self {
            trace,
            base,
            handles,
            briefly: false,
        }
    }

    /// The same, where what is freed as soon as it is made is told as one event that `goes`.
    pub fn brief(trace: &'a Trace) -> Self {
        Self {
            briefly: true,
            ..Self::new(trace)
        }
    }

    /// What happens before the first step.
    pub fn setup(&self, mut each: impl FnMut(Single)) {
        self.stretch::<dyn FnMut(Single)>(&self.before(), &mut each);
    }

    /// The events of the steps with positions from `start` to `end`.
    pub fn events(&self, start: usize, end: usize, mut each: impl FnMut(Single)) {
        self.stretch::<dyn FnMut(Single)>(&self.between(start, end), &mut each);
    }

    /// How many events those are, told one by one.
    pub fn count(&self, start: usize, end: usize) -> usize {
        let mut left = usize::MAX;
        self.tally(&self.between(start, end), &mut left, &mut |_, _| {});
        usize::MAX - left
    }

    /// How many copies there are of each storage after the first `left` of the events from `start` to `end`. What a row's
    /// repeats hand on counts under the names of both, the one in the other's debt.
    pub fn copies_after(&self, start: usize, end: usize, left: usize) -> Vec<i64> {
        let mut copies = vec![0_i64; self.trace.storages.len()];
        let mut change = |event: Event, times: i64| {
            if let Some(place) = copies.get_mut(event.storage() as usize) {
                *place += if event.is_free() { -times } else { times };
            }
        };
        let mut all = usize::MAX;
        self.tally(&self.before(), &mut all, &mut change);
        let idle = self.trace.repeated_steps(start);
        self.tally(&self.between(0, idle.start), &mut all, &mut change);
        self.tally(&self.between(idle.end, start), &mut all, &mut change);
        let mut left = left;
        self.tally(&self.between(start, end), &mut left, &mut change);
        copies
    }

    pub(super) fn before(&self) -> Stretch<'a> {
        Stretch {
            events: &self.trace.setup,
            start: 0,
            end: self.trace.setup.len(),
            groups: &self.trace.setup_groups,
        }
    }

    pub(super) fn between(&self, start: usize, end: usize) -> Stretch<'a> {
        let groups = &self.trace.groups;
        let from = groups.partition_point(|group| group.start < start);
        let inside = groups.get(from..).unwrap_or_default();
        let count = inside.iter().take_while(|group| group.end <= end).count();
        Stretch {
            events: &self.trace.events,
            start,
            end,
            groups: inside.get(..count).unwrap_or_default(),
        }
    }

    /// Tells the events of a stretch. Compiled once for all but the allocator's replay, which hears so many events that a
    /// call for each would be felt.
    pub(super) fn stretch<F: FnMut(Single) + ?Sized>(&self, stretch: &Stretch, each: &mut F) {
        let mut at = stretch.start;
        let mut course = Vec::new();
        for group in stretch.groups {
            self.plain(stretch.part(at, group.start), each);
            self.repeated(
                stretch.part(group.start, group.end),
                group,
                &mut course,
                each,
            );
            at = group.end;
        }
        self.plain(stretch.part(at, stretch.end), each);
    }

    /// Says of each event how often it happens among the first `left`, which it counts down, without telling one by one.
    fn tally(&self, stretch: &Stretch, left: &mut usize, say: &mut dyn FnMut(Event, i64)) {
        type Say<'a> = &'a mut dyn FnMut(Event, i64);
        let plain = |events: &[Event], left: &mut usize, say: Say| {
            for event in events {
                let times = (self.copies(*event) as usize).min(*left);
                *left -= times;
                say(*event, times as i64);
            }
        };
        let mut at = stretch.start;
        for group in stretch.groups {
            plain(stretch.part(at, group.start), left, say);
            at = group.end;
            let events = stretch.part(group.start, group.end);
            let whole = (group.times as usize).min(*left / events.len().max(1));
            *left -= whole * events.len();
            // The turn that is broken off, if there is one.
            let more = if whole < group.times as usize {
                *left
            } else {
                0
            }
            .min(events.len());
            *left -= more;
            for (place, event) in events.iter().enumerate() {
                say(*event, whole as i64 + i64::from(place < more));
            }
        }
        plain(stretch.part(at, stretch.end), left, say);
    }

    /// Outside groups an event is of all copies at once; only what a group will carry on is made singly.
    fn copies(&self, event: Event) -> u32 {
        match self.trace.storages.get(event.storage() as usize) {
            Some(entry) if entry.carried && !event.is_free() => 1,
            Some(entry) => entry.copies,
            None => 0,
        }
    }

    fn plain<F: FnMut(Single) + ?Sized>(&self, events: &[Event], each: &mut F) {
        let mut rest = events;
        while let [event, after @ ..] = rest {
            let copies = self.copies(*event);
            let goes = self.goes(*event, after, &[]);
            rest = after.get(usize::from(goes)..).unwrap_or_default();
            let first = self.single(*event, goes);
            for copy in 0..copies {
                each(Single {
                    handle: first.handle + copy,
                    ..first
                });
            }
        }
    }

    /// Whether what this event makes is freed by the next, and nobody takes it over in between.
    fn goes(&self, event: Event, after: &[Event], carries: &[(u32, u32)]) -> bool {
        let storage = event.storage();
        let next = after.first().filter(|_| self.briefly && !event.is_free());
        next.is_some_and(|next| next.is_free() && next.storage() == storage)
            && self
                .entry(storage)
                .is_some_and(|entry| entry.copies == 1 && !entry.carried)
            && carries
                .iter()
                .all(|(received, out)| *received != storage && *out != storage)
    }

    fn entry(&self, storage: u32) -> Option<&Storage> {
        self.trace.storages.get(storage as usize)
    }

    fn single(&self, event: Event, goes: bool) -> Single {
        let storage = event.storage();
        Single {
            handle: self.handle(storage, 0),
            storage,
            bytes: self.entry(storage).map_or(0, |entry| entry.bytes),
            stream: self
                .entry(storage)
                .map_or(0, |entry| entry.stream.number().into()),
            is_free: event.is_free(),
            goes,
        }
    }

    /// `course` is room for the group's events as they are told: what does not change from turn to turn is found once.
    fn repeated<F: FnMut(Single) + ?Sized>(
        &self,
        events: &[Event],
        group: &Group,
        course: &mut Vec<(Single, Turns)>,
        each: &mut F,
    ) {
        course.clear();
        let mut rest = events;
        while let [event, after @ ..] = rest {
            let goes = self.goes(*event, after, &group.carries);
            course.extend(self.turns(*event, goes, group));
            rest = after.get(usize::from(goes)..).unwrap_or_default();
        }
        // What a repeat holds of its neighbour, when that is not kept: two spare handles take turns.
        let mut held: Vec<u32> = group
            .carries
            .iter()
            .map(|(received, _)| self.handle(*received, 0))
            .collect();
        let mut passed = held.clone();
        for turn in 0..group.times {
            let copy = if group.reversed {
                group.times - 1 - turn
            } else {
                turn
            };
            for (single, turns) in course.iter() {
                let handle = match turns {
                    Turns::Same => single.handle,
                    Turns::Own => single.handle + copy,
                    Turns::Received(i) => held.get(*i).copied().unwrap_or(u32::MAX),
                    Turns::Passed(i, kept) => {
                        let handle = match kept {
                            _ if turn + 1 == group.times => single.handle,
                            Some(received) => self.handle(*received, copy + 1),
                            None => self.handles + 2 * *i as u32 + turn % 2,
                        };
                        if let Some(place) = passed.get_mut(*i) {
                            *place = handle;
                        }
                        handle
                    }
                };
                each(Single { handle, ..*single });
            }
            held.clone_from(&passed);
        }
    }

    /// How an event of a group is told: under its first handle, and what becomes of that from turn to turn.
    fn turns(&self, event: Event, goes: bool, group: &Group) -> Option<(Single, Turns)> {
        let storage = event.storage();
        let entry = self.trace.storages.get(storage as usize)?;
        let is_free = event.is_free();
        let carry = group.carries.iter().position(|(received, out)| {
            let named = if is_free { *received } else { *out };
            named == storage
        });
        let turns = match carry {
            Some(i) if is_free && entry.copies == 1 => Turns::Received(i),
            Some(i) if !is_free => {
                let received = group.carries.get(i).map_or(storage, |carry| carry.0);
                let of_received = self.trace.storages.get(received as usize);
                let kept = of_received.is_some_and(|entry| entry.copies > 1);
                Turns::Passed(i, kept.then_some(received))
            }
            _ if entry.copies > 1 => Turns::Own,
            _ => Turns::Same,
        };
        Some((self.single(event, goes), turns))
    }

    fn handle(&self, storage: u32, copy: u32) -> u32 {
        self.base
            .get(storage as usize)
            .map_or(u32::MAX, |base| base + copy)
    }
}

/// Events from one position to another, with the groups among them.
pub(super) struct Stretch<'a> {
    events: &'a [Event],
    start: usize,
    end: usize,
    groups: &'a [Group],
}

impl<'a> Stretch<'a> {
    fn part(&self, from: usize, to: usize) -> &'a [Event] {
        self.events.get(from..to).unwrap_or_default()
    }
}

/// What becomes of an event's handle from turn to turn of its group.
enum Turns {
    Same,
    /// Each copy has its own.
    Own,
    /// What the neighbour passed on, by the place among what is carried.
    Received(usize),
    /// What the next turn receives, and the storage under whose handles it is kept, where it is.
    Passed(usize, Option<u32>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::nets::{self, Sizes};
    use crate::scenario::{
        Attention, Checkpointing, Data, Kernels, Lora, Optimizer, Precision, Training,
    };
    use crate::step;
    use crate::tape::{Folding, Machine};

    fn course(trace: &Trace) -> Vec<(u64, bool)> {
        let expansion = Expansion::new(trace);
        let mut all = Vec::new();
        let mut push = |event: Single| all.push((event.bytes, event.is_free));
        expansion.setup(&mut push);
        expansion.events(0, trace.events.len(), &mut push);
        all
    }

    /// Between two allocations the order of what is freed does not matter.
    fn settled(mut course: Vec<(u64, bool)>) -> Vec<(u64, bool)> {
        for run in course.chunk_by_mut(|a, b| a.1 && b.1) {
            run.sort_unstable();
        }
        course
    }

    #[track_caller]
    fn check(model: &str, change: impl FnOnce(&mut Training)) {
        let entry = catalog::model(model).unwrap();
        let mut sizes = Sizes::from_entry(entry);
        sizes.set("layers", 8);
        let net = nets::build(entry.arch, &sizes).unwrap();
        let mut training = Training::default();
        change(&mut training);
        let data = Data {
            micro_batch: 2,
            sequence: 256,
            padding_mask: false,
            ..Data::default()
        };
        let run = |run: fn(_, _, _, _, _) -> step::Run, folding| {
            let plan = step::RunPlan {
                folding,
                ..step::RunPlan::first_steps(3)
            };
            run(&*net, &data, &training, Machine::default(), plan)
        };
        let folded = run(step::run, Folding::FromSecond);
        let plain = run(step::run_folded, Folding::Nothing);
        let groups = [&folded, &plain].map(|run| run.trace.groups.is_empty());
        assert_eq!(groups, [false, true], "{model} {training:?}");
        assert_eq!(
            (folded.parameters, folded.trainable),
            (plain.parameters, plain.trainable)
        );
        let (folded, plain) = (
            settled(course(&folded.trace)),
            settled(course(&plain.trace)),
        );
        let differs = folded.iter().zip(&plain).position(|(a, b)| a != b);
        assert_eq!(
            differs,
            None,
            "{model}: {:?} {:?} of {}",
            differs.map(|i| &folded[i - 3..i + 3]),
            differs.map(|i| &plain[i - 3..i + 3]),
            plain.len()
        );
        assert_eq!(folded.len(), plain.len());
    }

    #[test]
    fn a_folded_run_is_the_plain_run() {
        check("gpt2", |_| {});
        check("gpt2", |t| t.precision = Precision::Fp32);
        check("gpt2", |t| t.checkpointing = Checkpointing::Layers);
        check("gpt2", |t| t.attention = Attention::Eager);
        check("gpt2", |t| t.accumulation = 3);
        check("gpt2", |t| t.zero_to_none = false);
        check("gpt2", |t| t.keep_outputs = true);
        check("gpt2", |t| (t.ema, t.clip) = (true, true));
        for &optimizer in Optimizer::ALL {
            let training = Training {
                optimizer,
                ..Training::default()
            };
            if step::foldable(&training) {
                check("gpt2", |t| t.optimizer = optimizer);
            }
        }
        check("llama-3.2-1b", |t| t.precision = Precision::Bf16);
        check("llama-3.1-8b", |t| {
            (t.precision, t.lora) = (Precision::Bf16, Some(Lora::default()));
        });
        check("llama-3.1-8b", |t| {
            (t.checkpointing, t.lora) = (
                Checkpointing::Layers,
                Some(Lora {
                    dropout: 0.1,
                    ..Lora::default()
                }),
            );
        });
        check("bert-base-uncased", |t| t.precision = Precision::AmpFp16);
        check("llama-3.2-1b", |t| {
            (t.precision, t.kernels) = (Precision::Bf16, Kernels::Liger);
        });
    }
}
