//! A folded trace expanded into single events, in which every repeat of every group has its own storages.

use crate::allocator::Stream;
use crate::tape::{Event, Group, Storage, Trace};

/// One event of the expanded trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpandedEvent {
    /// The number of this copy of the storage.
    pub handle: u32,
    /// The storage's index in the trace, the same for all its copies.
    pub storage: u32,
    /// The requested size.
    pub bytes: u64,
    /// Whether the storage is freed; otherwise it is allocated.
    pub is_free: bool,
    /// The stream of its pool.
    pub stream: Stream,
    /// The next event frees it, and is not yielded on its own.
    pub transient: bool,
}

/// Gives every copy of every storage a handle, and yields the events one by one.
#[derive(Debug)]
pub struct Expansion<'a> {
    trace: &'a Trace,
    /// The first handle of each storage; the storage's index if each has one copy.
    base: Option<Vec<u32>>,
    handles: u32,
    /// An allocation and its free that follow each other are yielded as one event.
    joins_transient: bool,
}

impl<'a> Expansion<'a> {
    /// Yields each allocation and each free as an event of its own.
    pub fn new(trace: &'a Trace) -> Self {
        let count = trace.storages.len();
        let mut handles = count as u32;
        let base = trace.storages.iter().any(|storage| storage.copies != 1);
        let base = base.then(|| {
            handles = 0;
            let mut base = Vec::with_capacity(count);
            for storage in trace.storages.iter() {
                base.push(handles);
                handles = handles.saturating_add(storage.copies);
            }
            base
        });
        Self {
            trace,
            base,
            handles,
            joins_transient: false,
        }
    }

    /// The same, with an allocation that the next event frees yielded as one `transient` event.
    pub fn with_transient(trace: &'a Trace) -> Self {
        Self {
            joins_transient: true,
            ..Self::new(trace)
        }
    }

    /// Whether the events are the trace's own, with each storage's index as its handle.
    pub fn is_the_trace(&self) -> bool {
        let folded = !(self.trace.setup_groups.is_empty() && self.trace.groups.is_empty());
        self.base.is_none() && !folded
    }

    /// The events before the first step.
    pub fn setup(&self, mut each: impl FnMut(ExpandedEvent)) {
        self.visit::<dyn FnMut(ExpandedEvent)>(&self.before(), &mut each);
    }

    /// The events of the steps with positions from `start` to `end`.
    pub fn events(&self, start: usize, end: usize, mut each: impl FnMut(ExpandedEvent)) {
        self.visit::<dyn FnMut(ExpandedEvent)>(&self.between(start, end), &mut each);
    }

    /// How many events those are.
    pub fn count(&self, start: usize, end: usize) -> usize {
        let mut left = usize::MAX;
        self.tally(&self.between(start, end), &mut left, &mut |_, _| {});
        usize::MAX - left
    }

    /// How many copies of each storage are alive after the first `left` events from `start` to `end`. A storage carried
    /// from repeat to repeat has two indices, whose counts may be negative and positive; only their sum is meaningful.
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

    pub(super) fn before(&self) -> EventRange<'a> {
        EventRange {
            events: &self.trace.setup,
            start: 0,
            end: self.trace.setup.len(),
            groups: &self.trace.setup_groups,
        }
    }

    pub(super) fn between(&self, start: usize, end: usize) -> EventRange<'a> {
        let groups = &self.trace.groups;
        let from = groups.partition_point(|group| group.start < start);
        let inside = groups.get(from..).unwrap_or_default();
        let count = inside.iter().take_while(|group| group.end <= end).count();
        EventRange {
            events: &self.trace.events,
            start,
            end,
            groups: inside.get(..count).unwrap_or_default(),
        }
    }

    /// Yields the events of a range. Compiled once for all callers except the allocator's replay, where a dynamic call per
    /// event would be too slow.
    pub(super) fn visit<F: FnMut(ExpandedEvent) + ?Sized>(&self, range: &EventRange, each: &mut F) {
        let mut at = range.start;
        let mut template = Vec::new();
        for group in range.groups {
            self.plain(range.part(at, group.start), each);
            self.repeated(
                range.part(group.start, group.end),
                group,
                &mut template,
                each,
            );
            at = group.end;
        }
        self.plain(range.part(at, range.end), each);
    }

    /// Counts how often each event happens among the first `left`, which it counts down, without expanding them.
    fn tally(&self, range: &EventRange, left: &mut usize, count: &mut dyn FnMut(Event, i64)) {
        type Count<'a> = &'a mut dyn FnMut(Event, i64);
        let plain = |events: &[Event], left: &mut usize, count: Count| {
            for event in events {
                let times = (self.copies(*event) as usize).min(*left);
                *left -= times;
                count(*event, times as i64);
            }
        };
        let mut at = range.start;
        for group in range.groups {
            plain(range.part(at, group.start), left, count);
            at = group.end;
            let events = range.part(group.start, group.end);
            let whole = (group.times as usize).min(*left / events.len().max(1));
            *left -= whole * events.len();
            // Events of a last, incomplete repeat.
            let more = if whole < group.times as usize {
                *left
            } else {
                0
            }
            .min(events.len());
            *left -= more;
            for (place, event) in events.iter().enumerate() {
                count(*event, whole as i64 + i64::from(place < more));
            }
        }
        plain(range.part(at, range.end), left, count);
    }

    /// Outside groups an event stands for all copies at once, except that a carried storage is allocated once.
    fn copies(&self, event: Event) -> u32 {
        match self.trace.storages.get(event.storage() as usize) {
            Some(entry) if entry.carried && !event.is_free() => 1,
            Some(entry) => entry.copies,
            None => 0,
        }
    }

    fn plain<F: FnMut(ExpandedEvent) + ?Sized>(&self, events: &[Event], each: &mut F) {
        let mut rest = events;
        while let [event, after @ ..] = rest {
            let copies = self.copies(*event);
            let transient = self.is_transient(*event, after, &[]);
            rest = after.get(usize::from(transient)..).unwrap_or_default();
            let first = self.event(*event, transient);
            for copy in 0..copies {
                each(ExpandedEvent {
                    handle: first.handle + copy,
                    ..first
                });
            }
        }
    }

    /// Whether the next event frees what this one allocates, and no repeat carries it on in between.
    fn is_transient(&self, event: Event, after: &[Event], carries: &[(u32, u32)]) -> bool {
        let storage = event.storage();
        let next = after
            .first()
            .filter(|_| self.joins_transient && !event.is_free());
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

    fn event(&self, event: Event, transient: bool) -> ExpandedEvent {
        let storage = event.storage();
        ExpandedEvent {
            handle: self.handle(storage, 0),
            storage,
            bytes: self.entry(storage).map_or(0, |entry| entry.bytes),
            stream: self
                .entry(storage)
                .map_or(0, |entry| entry.stream.number().into()),
            is_free: event.is_free(),
            transient,
        }
    }

    /// `template` is a buffer for the group's events: everything equal in all repeats is computed once.
    fn repeated<F: FnMut(ExpandedEvent) + ?Sized>(
        &self,
        events: &[Event],
        group: &Group,
        template: &mut Vec<(ExpandedEvent, HandleRule)>,
        each: &mut F,
    ) {
        template.clear();
        let mut rest = events;
        while let [event, after @ ..] = rest {
            let transient = self.is_transient(*event, after, &group.carries);
            template.extend(self.handle_rule(*event, transient, group));
            rest = after.get(usize::from(transient)..).unwrap_or_default();
        }
        // The handles of storages carried in from the previous repeat; if they are not kept, two spare handles alternate.
        let mut held: Vec<u32> = group
            .carries
            .iter()
            .map(|(received, _)| self.handle(*received, 0))
            .collect();
        let mut passed = held.clone();
        for repeat in 0..group.times {
            let copy = if group.reversed {
                group.times - 1 - repeat
            } else {
                repeat
            };
            for (event, rule) in template.iter() {
                let handle = match rule {
                    HandleRule::Same => event.handle,
                    HandleRule::Own => event.handle + copy,
                    HandleRule::Received(i) => held.get(*i).copied().unwrap_or(u32::MAX),
                    HandleRule::Passed(i, kept) => {
                        let handle = match kept {
                            _ if repeat + 1 == group.times => event.handle,
                            Some(received) => self.handle(*received, copy + 1),
                            None => self.handles + 2 * *i as u32 + repeat % 2,
                        };
                        if let Some(place) = passed.get_mut(*i) {
                            *place = handle;
                        }
                        handle
                    }
                };
                each(ExpandedEvent { handle, ..*event });
            }
            held.clone_from(&passed);
        }
    }

    /// An event of a group under its first handle, and the rule for its handle in later repeats.
    fn handle_rule(
        &self,
        event: Event,
        transient: bool,
        group: &Group,
    ) -> Option<(ExpandedEvent, HandleRule)> {
        let storage = event.storage();
        let entry = self.trace.storages.get(storage as usize)?;
        let is_free = event.is_free();
        let carry = group.carries.iter().position(|(received, out)| {
            let named = if is_free { *received } else { *out };
            named == storage
        });
        let rule = match carry {
            Some(i) if is_free && entry.copies == 1 => HandleRule::Received(i),
            Some(i) if !is_free => {
                let received = group.carries.get(i).map_or(storage, |carry| carry.0);
                let of_received = self.trace.storages.get(received as usize);
                let kept = of_received.is_some_and(|entry| entry.copies > 1);
                HandleRule::Passed(i, kept.then_some(received))
            }
            _ if entry.copies > 1 => HandleRule::Own,
            _ => HandleRule::Same,
        };
        Some((self.event(event, transient), rule))
    }

    fn handle(&self, storage: u32, copy: u32) -> u32 {
        let base = match &self.base {
            Some(base) => base.get(storage as usize).copied(),
            None => Some(storage).filter(|storage| (*storage as usize) < self.trace.storages.len()),
        };
        base.map_or(u32::MAX, |base| base + copy)
    }
}

/// The events from one position to another, with the groups among them.
pub(super) struct EventRange<'a> {
    events: &'a [Event],
    start: usize,
    end: usize,
    groups: &'a [Group],
}

impl<'a> EventRange<'a> {
    fn part(&self, from: usize, to: usize) -> &'a [Event] {
        self.events.get(from..to).unwrap_or_default()
    }
}

/// How an event's handle changes from repeat to repeat of its group.
enum HandleRule {
    Same,
    /// Each copy has its own handle.
    Own,
    /// The storage carried in from the previous repeat, by its index among the carries.
    Received(usize),
    /// The storage carried to the next repeat, and the storage under whose handles it is kept, if any.
    Passed(usize, Option<u32>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::{self, Sizes};
    use crate::step;
    use crate::tape::{Folding, Machine};
    use headroom_catalog as catalog;
    use headroom_scenario::{
        Attention, Checkpointing, Data, Kernels, Lora, Optimizer, Precision, Training,
    };

    fn expanded(trace: &Trace) -> Vec<(u64, bool)> {
        let expansion = Expansion::new(trace);
        let mut all = Vec::new();
        let mut push = |event: ExpandedEvent| all.push((event.bytes, event.is_free));
        expansion.setup(&mut push);
        expansion.events(0, trace.events.len(), &mut push);
        all
    }

    /// Between two allocations the order of what is freed does not matter.
    fn frees_sorted(mut events: Vec<(u64, bool)>) -> Vec<(u64, bool)> {
        for run in events.chunk_by_mut(|a, b| a.1 && b.1) {
            run.sort_unstable();
        }
        events
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
            frees_sorted(expanded(&folded.trace)),
            frees_sorted(expanded(&plain.trace)),
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
            if step::plan::foldable(&training) {
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
        for model in [
            "vit-b16",
            "dinov2-vitb14",
            "beit-b16",
            "eva02-l14-448",
            "esm2-35m",
            "distilbert-base",
            "whisper-base",
            "opus-mt-en-de",
            "bart-base",
            "flux.1-dev",
            "flux.2-klein-base-4b",
            "dit-xl-2-256",
            "mae-vit-b-pretrain",
            "clip-vit-b16",
        ] {
            check(model, |_| {});
            check(model, |t| t.precision = Precision::Fp32);
            check(model, |t| {
                (t.precision, t.checkpointing) = (Precision::Bf16, Checkpointing::Layers);
            });
            check(model, |t| {
                (t.attention, t.accumulation) = (Attention::Eager, 3);
            });
        }
        for model in ["t5-small", "whisper-base", "flux.1-dev"] {
            check(model, |_| {});
            check(model, |t| t.zero_to_none = false);
            check(model, |t| {
                t.lora = Some(Lora {
                    dropout: 0.1,
                    ..Lora::default()
                });
            });
        }
        check("llama-3.2-1b", |t| {
            (t.precision, t.kernels) = (Precision::Bf16, Kernels::Liger);
        });
    }
}
