//! Test helper: compares a small run with the peak recorded from the real library
//! (PyTorch 2.15, transformers 5.23, timm 1.0, diffusers 0.39, PEFT 0.21 on a bookkeeping GPU).

use super::{Sizes, build};
use crate::allocator::Settings;
use crate::estimate::{Peaks, Phase};
use crate::step::{Run, RunPlan, run};
use crate::tape::Machine;
use headroom_catalog::model;
use headroom_scenario::{Data, Optimizer, Precision, Training};

/// A run as it was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    architecture: String,
    sizes: Sizes,
    pub data: Data,
    pub training: Training,
    pub steps: u32,
    /// Bytes that the peak may be off.
    tolerance: u64,
}

/// Sizes by their names, such as "layers=2 hidden=64".
pub(crate) fn sizes(text: &str) -> Vec<(&str, u64)> {
    text.split(' ')
        .map(|word| {
            let (name, size) = word.split_once('=').expect(word);
            (name, size.parse().expect(word))
        })
        .collect()
}

impl Case {
    /// Two steps of a model with these sizes, to the byte.
    pub(crate) fn new(architecture: &str, sizes: &[(&str, u64)]) -> Self {
        let case = Self {
            architecture: architecture.to_string(),
            sizes: Sizes::default(),
            data: Data::default(),
            training: Training::default(),
            steps: 2,
            tolerance: 0,
        };
        case.with(sizes)
    }

    /// A model of the catalogue with some sizes changed.
    pub(crate) fn of_catalog(id: &str, changes: &[(&str, u64)]) -> Self {
        let entry = model(id).unwrap();
        let case = Self {
            sizes: Sizes::from_entry(entry),
            ..Self::new(entry.arch, &[])
        };
        case.with(changes)
    }

    pub(crate) fn with(mut self, sizes: &[(&str, u64)]) -> Self {
        for (name, value) in sizes {
            self.sizes.set(name, *value);
        }
        self
    }

    pub(crate) fn batch(mut self, micro_batch: u64, sequence: u64) -> Self {
        self.data.micro_batch = micro_batch;
        self.data.sequence = sequence;
        self
    }

    pub(crate) fn trained(self, training: &Training) -> Self {
        let training = training.clone();
        Self { training, ..self }
    }

    /// Over three steps. Small tensors that only decide a branch are not all allocated: the peak may be off by some.
    pub(crate) fn three_steps(self) -> Self {
        Self {
            steps: 3,
            tolerance: 4096,
            ..self
        }
    }

    pub(crate) fn run(&self) -> Run {
        let net = build(&self.architecture, &self.sizes).unwrap();
        let plan = RunPlan::first_steps(self.steps);
        let (data, training) = (&self.data, &self.training);
        run(&*net, data, training, Machine::default(), plan)
    }

    /// The highest allocation and the phase it is in.
    pub(crate) fn peak(&self) -> (u64, Phase) {
        let run = self.run();
        let peaks = Peaks::replayed(&run.trace, &Settings::expandable());
        let peak = peaks.highest().unwrap();
        (peak.bytes, peak.mark.phase)
    }
}

/// Compares the predicted peak with the recorded one.
#[track_caller]
pub(crate) fn check(case: &Case, recorded: u64) {
    let (peak, _) = case.peak();
    let off = peak.abs_diff(recorded);
    assert!(
        off <= case.tolerance,
        "{}: {peak} bytes, recorded {recorded}",
        case.architecture
    );
}

pub(crate) fn training(precision: Precision, optimizer: Optimizer) -> Training {
    Training {
        precision,
        optimizer,
        ..Training::default()
    }
}
