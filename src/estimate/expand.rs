//! A folded trace, event by event: every repeat of every group with blocks of its own.

use crate::tape::{Event, Group, Trace};

/// One event of the unfolded course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single {
    /// Names this very copy of the block.
    pub handle: u32,
    pub block: u32,
    pub is_free: bool,
}

/// Gives every copy of every block a number, and tells the events one by one.
#[derive(Debug)]
pub struct Expansion<'a> {
    trace: &'a Trace,
    /// The first handle of each block.
    base: Vec<u32>,
    handles: u32,
}

impl<'a> Expansion<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let mut handles: u32 = 0;
        let base = trace
            .blocks
            .iter()
            .map(|block| {
                let first = handles;
                handles = handles.saturating_add(block.copies);
                first
            })
            .collect();
        Self {
            trace,
            base,
            handles,
        }
    }

    /// What happens before the first step.
    pub fn setup(&self, mut each: impl FnMut(Single)) {
        self.stretch(
            &self.trace.setup,
            0,
            self.trace.setup.len(),
            &self.trace.setup_groups,
            &mut each,
        );
    }

    /// The events of the steps with positions from `start` to `end`.
    pub fn events(&self, start: usize, end: usize, mut each: impl FnMut(Single)) {
        self.stretch(
            &self.trace.events,
            start,
            end,
            &self.trace.groups,
            &mut each,
        );
    }

    fn stretch(
        &self,
        events: &[Event],
        start: usize,
        end: usize,
        groups: &[Group],
        each: &mut dyn FnMut(Single),
    ) {
        let mut at = start;
        let first = groups.partition_point(|group| group.start < start);
        for group in groups
            .iter()
            .skip(first)
            .take_while(|group| group.end <= end)
        {
            self.plain(events.get(at..group.start), each);
            self.repeated(events.get(group.start..group.end), group, each);
            at = group.end;
        }
        self.plain(events.get(at..end), each);
    }

    /// Outside groups an event is of all copies at once; only what a group will carry on is made singly.
    fn plain(&self, events: Option<&[Event]>, each: &mut dyn FnMut(Single)) {
        for event in events.unwrap_or_default() {
            let block = event.block();
            let Some(entry) = self.trace.blocks.get(block as usize) else {
                continue;
            };
            let copies = if entry.carried && !event.is_free() {
                1
            } else {
                entry.copies
            };
            for copy in 0..copies {
                each(Single {
                    handle: self.handle(block, copy),
                    block,
                    is_free: event.is_free(),
                });
            }
        }
    }

    fn repeated(&self, events: Option<&[Event]>, group: &Group, each: &mut dyn FnMut(Single)) {
        let events = events.unwrap_or_default();
        // What a repeat holds of its neighbour, when that is not kept: two spare handles take turns.
        let mut held: Vec<u32> = group
            .carries
            .iter()
            .map(|(received, _)| self.handle(*received, 0))
            .collect();
        for turn in 0..group.times {
            let copy = if group.reversed {
                group.times - 1 - turn
            } else {
                turn
            };
            let last = turn + 1 == group.times;
            let mut passed: Vec<Option<u32>> = vec![None; group.carries.len()];
            for event in events {
                let block = event.block();
                let Some(entry) = self.trace.blocks.get(block as usize) else {
                    continue;
                };
                let carry = group.carries.iter().position(|(received, out)| {
                    if event.is_free() {
                        *received == block
                    } else {
                        *out == block
                    }
                });
                let handle = match carry {
                    Some(i) if event.is_free() && entry.copies == 1 => {
                        held.get(i).copied().unwrap_or(u32::MAX)
                    }
                    Some(i) if !event.is_free() => {
                        let received = group.carries.get(i).map_or(block, |carry| carry.0);
                        let kept = self
                            .trace
                            .blocks
                            .get(received as usize)
                            .is_some_and(|entry| entry.copies > 1);
                        let handle = match (last, kept) {
                            (true, _) => self.handle(block, 0),
                            (false, true) => self.handle(received, copy + 1),
                            (false, false) => self.handles + 2 * i as u32 + turn % 2,
                        };
                        if let Some(place) = passed.get_mut(i) {
                            *place = Some(handle);
                        }
                        handle
                    }
                    _ if entry.copies > 1 => self.handle(block, copy),
                    _ => self.handle(block, 0),
                };
                each(Single {
                    handle,
                    block,
                    is_free: event.is_free(),
                });
            }
            for (place, passed) in held.iter_mut().zip(passed) {
                *place = passed.unwrap_or(*place);
            }
        }
    }

    fn handle(&self, block: u32, copy: u32) -> u32 {
        self.base
            .get(block as usize)
            .map_or(u32::MAX, |base| base + copy)
    }
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
        let mut push =
            |event: Single| all.push((trace.blocks[event.block as usize].bytes, event.is_free));
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
            let course = step::Course {
                folding,
                ..step::Course::from_the_start(3)
            };
            run(&*net, &data, &training, Machine::default(), course)
        };
        let folded = run(step::run, Folding::FromSecond);
        let plain = run(step::run_as, Folding::Nothing);
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
        check("gpt2", |it| it.precision = Precision::Fp32);
        check("gpt2", |it| it.checkpointing = Checkpointing::Layers);
        check("gpt2", |it| it.attention = Attention::Eager);
        check("gpt2", |it| it.accumulation = 3);
        check("gpt2", |it| it.zero_to_none = false);
        check("gpt2", |it| it.keep_outputs = true);
        check("gpt2", |it| (it.ema, it.clip) = (true, true));
        for &optimizer in Optimizer::ALL {
            let training = Training {
                optimizer,
                ..Training::default()
            };
            if step::foldable(&training) {
                check("gpt2", |it| it.optimizer = optimizer);
            }
        }
        check("llama-3.2-1b", |it| it.precision = Precision::Bf16);
        check("llama-3.1-8b", |it| {
            (it.precision, it.lora) = (Precision::Bf16, Some(Lora::default()));
        });
        check("llama-3.1-8b", |it| {
            (it.checkpointing, it.lora) = (
                Checkpointing::Layers,
                Some(Lora {
                    dropout: 0.1,
                    ..Lora::default()
                }),
            );
        });
        check("bert-base-uncased", |it| it.precision = Precision::AmpFp16);
        check("llama-3.2-1b", |it| {
            (it.precision, it.kernels) = (Precision::Bf16, Kernels::Liger);
        });
    }
}
