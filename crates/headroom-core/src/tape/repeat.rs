//! Steps and micro-batches that do exactly what the one before did: their events are copied instead of run.

use std::ops::Range;

use super::trace::Repeating;
use super::{Copied, Group, PhaseStart, Tape, Trace};

impl Tape {
    /// Copies the events of the step before this one, if that step freed exactly what it allocated: then nothing that decides
    /// what a step does has changed. Returns whether it did.
    pub fn repeat_step(&self, step: u32) -> bool {
        let mut trace = self.0.trace.borrow_mut();
        let repeated = self.0.recorder.records_tensors.get().is_none() && trace.repeat_step(step);
        if repeated {
            self.0.ambient.step.set(step);
        }
        repeated
    }

    /// How many phases have begun.
    pub fn phases(&self) -> usize {
        self.0.trace.borrow().phase_starts.len()
    }

    /// Whether the phases from this one on freed exactly what they allocated.
    pub fn could_repeat(&self, from: usize) -> bool {
        let trace = self.0.trace.borrow();
        let first = trace.phase_starts.get(from);
        self.0.recorder.records_tensors.get().is_none()
            && first.is_some_and(|first| trace.balances(first.at))
    }

    /// Copies the phases from this one on, those of a micro-batch, if they freed exactly what they allocated: the next does
    /// the same. Returns whether it did.
    pub fn repeat_phases(&self, from: usize) -> bool {
        let mut trace = self.0.trace.borrow_mut();
        self.0.recorder.records_tensors.get().is_none() && trace.repeat_phases(from)
    }
}

impl Trace {
    /// The complete equal steps before this event.
    pub fn repeated_steps(&self, before: usize) -> Range<usize> {
        match self.repeating {
            Some(Repeating { from, length }) if before >= from.saturating_add(length) => {
                from..before - (before - from) % length.max(1)
            }
            _ => 0..0,
        }
    }

    fn repeat_step(&mut self, step: u32) -> bool {
        let before = step.checked_sub(1);
        let from = self
            .phase_starts
            .partition_point(|start| Some(start.step) < before);
        let Some(&first) = self
            .phase_starts
            .get(from)
            .filter(|start| Some(start.step) == before)
        else {
            return false;
        };
        if !self.balances(first.at) {
            return false;
        }
        self.repeating.get_or_insert(Repeating {
            from: first.at,
            length: self.events.len() - first.at,
        });
        self.copy_phases(from, step);
        true
    }

    fn repeat_phases(&mut self, from: usize) -> bool {
        let first = self.phase_starts.get(from).copied();
        let Some(first) = first.filter(|first| self.balances(first.at)) else {
            return false;
        };
        self.copy_phases(from, first.step);
        true
    }

    /// Appends what was recorded since a phase began once more, as part of this step.
    fn copy_phases(&mut self, from: usize, step: u32) {
        let Some(&first) = self.phase_starts.get(from) else {
            return;
        };
        let kernels = self.kernels.len();
        let later = self.events.len() - first.at;
        let count = self.phase_starts.len() - from;
        let inside = self.copied.iter().filter(|copied| copied.from >= from);
        let inside: Vec<Copied> = inside
            .map(|copied| Copied {
                from: copied.from + count,
                ..*copied
            })
            .collect();
        let from_here = Copied {
            from: from + count,
            count,
        };
        self.copied.push(from_here);
        self.copied.extend(inside);
        let marks: Vec<PhaseStart> = self.phase_starts[from..].to_vec();
        self.phase_starts
            .extend(marks.into_iter().map(|start| PhaseStart {
                at: start.at + later,
                kernels: start.kernels + (kernels - first.kernels),
                step,
                ..start
            }));
        let groups = self.groups.partition_point(|group| group.start < first.at);
        let groups: Vec<Group> = self.groups.get(groups..).unwrap_or_default().to_vec();
        self.groups.extend(groups.into_iter().map(|group| Group {
            start: group.start + later,
            end: group.end + later,
            ..group
        }));
        self.events.reserve_exact(later);
        self.events.extend_from_within(first.at..);
        self.kernels.reserve_exact(kernels - first.kernels);
        self.kernels.extend_from_within(first.kernels..);
    }

    /// Whether the events from here on free exactly what they allocate.
    fn balances(&self, from: usize) -> bool {
        let events = self.events.get(from..).unwrap_or_default();
        let made = events.iter().find(|event| !event.is_free());
        let Some(oldest) = made.map(|event| event.storage()) else {
            return false;
        };
        let frees = events.iter().filter(|event| event.is_free());
        // Storages are numbered in the order of their allocation.
        let own = frees.clone().all(|event| event.storage() >= oldest);
        own && frees.count() * 2 == events.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::estimate::Expansion;
    use crate::nets::{self, Sizes};
    use crate::step::{self, Detail, Run, RunPlan};
    use crate::tape::{Machine, Trace};
    use headroom_catalog as catalog;
    use headroom_scenario::{Checkpointing, Data, Lora, Optimizer, Precision, Training};

    /// Every event's bytes, kind and operation, and where the phases begin.
    fn unfolded(trace: &Trace) -> impl PartialEq {
        let mut all = Vec::new();
        let mut begin = Vec::new();
        let expansion = Expansion::new(trace);
        for (i, mark) in trace.phase_starts.iter().enumerate() {
            let until = trace
                .phase_starts
                .get(i + 1)
                .map_or(trace.events.len(), |start| start.at);
            expansion.events(mark.at, until, |event| {
                let storage = trace.storages.get(event.storage as usize).unwrap();
                let op = trace.source(storage).op;
                all.push((event.bytes, event.is_free, op, storage.category));
            });
            begin.push((mark.step, mark.phase, all.len()));
        }
        let kernels = trace
            .kernels
            .iter()
            .map(|kernel| (kernel.op, kernel.flops.to_bits(), kernel.times));
        (all, begin, kernels.collect::<Vec<_>>())
    }

    /// A copied third step equals one that is run; `copied` says whether it should be copied.
    #[track_caller]
    fn check(model: &str, copied: Option<bool>, change: impl FnOnce(&mut Training)) {
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
        // Recording tensors runs every step.
        let run = |detail| -> Run {
            let plan = RunPlan {
                detail,
                ..RunPlan::first_steps(3)
            };
            step::run(&*net, &data, &training, Machine::default(), plan)
        };
        let (short, long) = (run(Detail::Kernels).trace, run(Detail::Tensors).trace);
        assert!(unfolded(&short) == unfolded(&long), "{model} {training:?}");
        let fewer = short.storages.len() < long.storages.len();
        assert!(
            copied.is_none_or(|copied| copied == fewer),
            "{model} {training:?}"
        );
    }

    #[test]
    fn a_copied_step_equals_one_that_is_run() {
        for model in ["gpt2", "llama-3.2-1b", "vit-b16", "resnet-18"] {
            check(model, Some(true), |_| {});
            check(model, Some(true), |t| t.precision = Precision::AmpFp16);
        }
        check("gpt2", Some(false), |t| t.keep_outputs = true);
        check("gpt2", Some(false), |t| t.zero_late = true);
        check("gpt2", Some(true), |t| t.zero_to_none = false);
        check("gpt2", Some(true), |t| (t.ema, t.clip) = (true, true));
        check("gpt2", Some(true), |t| {
            (t.accumulation, t.checkpointing) = (3, Checkpointing::Layers);
        });
        check("llama-3.2-1b", Some(true), |t| {
            t.lora = Some(Lora::default());
        });
        // Micro-batches between the second and the last are copied too.
        for model in ["gpt2", "llama-3.2-1b", "resnet-18"] {
            for precision in [Precision::AmpBf16, Precision::AmpFp16, Precision::Bf16] {
                check(model, Some(true), |t| {
                    (t.accumulation, t.precision) = (6, precision);
                });
            }
        }
        check("gpt2", None, |t| {
            (t.accumulation, t.keep_outputs) = (6, true);
        });
        check("gpt2", None, |t| (t.accumulation, t.zero_late) = (6, true));
        check("gpt2", None, |t| {
            (t.accumulation, t.checkpointing) = (7, Checkpointing::Offload);
        });
        for &optimizer in Optimizer::ALL {
            check("gpt2", None, |t| t.optimizer = optimizer);
            check("resnet-18", None, |t| t.optimizer = optimizer);
        }
    }
}
