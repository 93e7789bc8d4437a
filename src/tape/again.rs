//! A step that only does what the one before it did: told again without being run.

use std::ops::Range;

use super::{Group, Mark, Tape, Trace};

impl Tape {
    /// Tells the step before this one once more, where it left memory as it had found it: it freed all that it made, and
    /// nothing else. Then whatever decides what a step does is as it was. Says whether it did.
    pub fn again(&self, step: u32) -> bool {
        let mut trace = self.0.trace.borrow_mut();
        let told = self.0.noting.get().is_none() && trace.again(step);
        if told {
            self.0.step.set(step);
        }
        told
    }
}

/// Steps that are alike among the events: where the first begins, and how long each is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    from: usize,
    length: usize,
}

impl Trace {
    /// Whole steps before this event that leave nothing: those that later ones are told like.
    pub fn without_trace(&self, before: usize) -> Range<usize> {
        match self.alike {
            Some(Alike { from, length }) if before >= from.saturating_add(length) => {
                from..before - (before - from) % length.max(1)
            }
            _ => 0..0,
        }
    }

    fn again(&mut self, step: u32) -> bool {
        let before = step.checked_sub(1);
        let from = self.marks.partition_point(|it| Some(it.step) < before);
        let Some(&first) = self.marks.get(from).filter(|it| Some(it.step) == before) else {
            return false;
        };
        if !self.balances(first.at) {
            return false;
        }
        let kernels = self.kernels.len();
        let later = self.events.len() - first.at;
        self.alike.get_or_insert(Alike {
            from: first.at,
            length: later,
        });
        let marks: Vec<Mark> = self.marks.drain(from..).collect();
        self.marks.extend_from_slice(&marks);
        self.marks.extend(marks.into_iter().map(|it| Mark {
            at: it.at + later,
            kernels: it.kernels + (kernels - first.kernels),
            step,
            ..it
        }));
        let groups = self.groups.partition_point(|it| it.start < first.at);
        let groups: Vec<Group> = self.groups.get(groups..).unwrap_or_default().to_vec();
        self.groups.extend(groups.into_iter().map(|it| Group {
            start: it.start + later,
            end: it.end + later,
            ..it
        }));
        self.events.reserve_exact(later);
        self.events.extend_from_within(first.at..);
        self.kernels.reserve_exact(kernels - first.kernels);
        self.kernels.extend_from_within(first.kernels..);
        true
    }

    /// Whether what is made from this event on is freed again, and nothing else.
    fn balances(&self, from: usize) -> bool {
        let events = self.events.get(from..).unwrap_or_default();
        let made = events.iter().find(|it| !it.is_free());
        let Some(oldest) = made.map(|it| it.block()) else {
            return false;
        };
        let frees = events.iter().filter(|it| it.is_free());
        // Blocks are numbered as they are made, each once.
        let own = frees.clone().all(|it| it.block() >= oldest);
        own && frees.count() * 2 == events.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog;
    use crate::estimate::Expansion;
    use crate::nets::{self, Sizes};
    use crate::scenario::{Checkpointing, Data, Lora, Optimizer, Precision, Training};
    use crate::step::{self, Detail, Run, RunPlan};
    use crate::tape::{Machine, Trace};

    /// Bytes, kind and operation of what happens, one by one, and where the phases begin.
    fn course(trace: &Trace) -> impl PartialEq {
        let mut all = Vec::new();
        let mut begin = Vec::new();
        let expansion = Expansion::new(trace);
        for (i, mark) in trace.marks.iter().enumerate() {
            let until = trace
                .marks
                .get(i + 1)
                .map_or(trace.events.len(), |it| it.at);
            expansion.events(mark.at, until, |it| {
                let block = trace.blocks.get(it.block as usize).unwrap();
                all.push((it.bytes, it.is_free, block.op, block.category));
            });
            begin.push((mark.step, mark.phase, all.len()));
        }
        let kernels = trace
            .kernels
            .iter()
            .map(|it| (it.op, it.flops.to_bits(), it.times));
        (all, begin, kernels.collect::<Vec<_>>())
    }

    /// The third step says what it says when it is run; and whether it is told again, where that is asked.
    #[track_caller]
    fn check(model: &str, told: Option<bool>, change: impl FnOnce(&mut Training)) {
        let entry = catalog::model(model).unwrap();
        let mut sizes = Sizes::from_entry(entry);
        sizes.set("layers", 3);
        let net = nets::build(entry.arch, &sizes).unwrap();
        let mut training = Training::default();
        change(&mut training);
        let data = Data {
            micro_batch: 2,
            sequence: 64,
            ..Data::default()
        };
        // What is noted is run step by step.
        let run = |detail| -> Run {
            let plan = RunPlan {
                detail,
                ..RunPlan::first_steps(3)
            };
            step::run(&*net, &data, &training, Machine::default(), plan)
        };
        let (short, long) = (run(Detail::Kernels).trace, run(Detail::Tensors).trace);
        assert!(course(&short) == course(&long), "{model} {training:?}");
        let fewer = short.blocks.len() < long.blocks.len();
        assert!(told.is_none_or(|it| it == fewer), "{model} {training:?}");
    }

    #[test]
    fn a_step_told_again_is_the_step_run() {
        for model in ["gpt2", "llama-3.2-1b", "vit-b16", "resnet-18"] {
            check(model, Some(true), |_| {});
            check(model, Some(true), |it| it.precision = Precision::AmpFp16);
        }
        check("gpt2", Some(false), |it| it.keep_outputs = true);
        check("gpt2", Some(false), |it| it.zero_late = true);
        check("gpt2", Some(true), |it| it.zero_to_none = false);
        check("gpt2", Some(true), |it| (it.ema, it.clip) = (true, true));
        check("gpt2", Some(true), |it| {
            (it.accumulation, it.checkpointing) = (3, Checkpointing::Layers);
        });
        check("llama-3.2-1b", Some(true), |it| {
            it.lora = Some(Lora::default());
        });
        for &optimizer in Optimizer::ALL {
            check("gpt2", None, |it| it.optimizer = optimizer);
            check("resnet-18", None, |it| it.optimizer = optimizer);
        }
    }
}
