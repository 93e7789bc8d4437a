//! Gradient buckets of `DistributedDataParallel` (torch/csrc/distributed/c10d/reducer.cpp).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::nets::Model;
use crate::order::{Map, sorted};
use crate::tape::{Category, DType, Hook, Param, Tensor};

/// How a GPU's gradients meet those of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buckets {
    /// One GPU.
    #[default]
    None,
    /// Gradients are copied into buckets of so many MiB, and their means back.
    Copied { mib: u64 },
    /// `gradient_as_bucket_view=True`: gradients are parts of the buckets.
    Viewed { mib: u64 },
}

impl Buckets {
    const fn mib(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Copied { mib } | Self::Viewed { mib } => Some(mib),
        }
    }
}

/// The buckets of a run: as large together as the gradients, and there from before the first step to the end.
pub struct Reducer {
    kind: Buckets,
    buckets: Rc<RefCell<Vec<Tensor>>>,
    /// Whether this backward meets the other GPUs: under `no_sync`, only the last of a step does.
    meets: Rc<Cell<bool>>,
}

impl Reducer {
    pub fn new(kind: Buckets) -> Self {
        Self {
            kind,
            buckets: Rc::default(),
            meets: Rc::new(Cell::new(true)),
        }
    }

    /// One bucket a type, made with the wrapper, before any gradient has come.
    pub fn wrap(&self, model: &Model) {
        if self.kind.mib().is_none() {
            return;
        }
        let made = model
            .tape
            .setting_up(|| Self::made(model, u64::MAX, u64::MAX));
        self.buckets.replace(made);
        if matches!(self.kind, Buckets::Viewed { .. }) {
            self.hook(model);
        }
    }

    /// `rebuild_buckets`: before the second forward, in the order in which gradients came, the first of one MiB.
    pub fn rebuild(&self, model: &Model) {
        const FIRST: u64 = 1 << 20;
        let Some(mib) = self.kind.mib() else { return };
        drop(self.buckets.replace(Vec::new()));
        let made = Self::made(model, FIRST, mib.saturating_mul(1 << 20));
        self.buckets.replace(made);
    }

    pub fn meets(&self, it: bool) {
        self.meets.set(it);
    }

    /// `compute_bucket_assignment_by_size`: a bucket is closed once it has reached its limit; each type has its own.
    fn made(model: &Model, first: u64, limit: u64) -> Vec<Tensor> {
        let mut open: Map<DType, (u64, u64)> = Map::new();
        let mut all = Vec::new();
        let bucket = |bytes: u64| {
            let made = model.tape.empty("bucket", [bytes], DType::U8);
            made.set_category(Category::Gradients);
            made
        };
        // The last that forward meets is the first whose gradient comes.
        let params = sorted(model.trainable(), |a, b| b.met().cmp(&a.met()));
        for param in params {
            let (filled, cap) = open.or_insert(param.data.dtype(), (0, first));
            for _ in 0..param.copies() {
                *filled = filled.saturating_add(param.data.bytes());
                if *filled >= *cap {
                    all.push(bucket(std::mem::take(filled)));
                    *cap = limit;
                }
            }
        }
        let rest = open.values().map(|(filled, _)| *filled);
        all.extend(rest.filter(|filled| *filled > 0).map(bucket));
        all
    }

    /// A gradient that has come is copied into its bucket, and the parameter is given that part of it.
    fn hook(&self, model: &Model) {
        for param in model.trainable() {
            let (buckets, meets) = (self.buckets.clone(), self.meets.clone());
            let hook: Rc<Hook> = Rc::new(move |param: &Rc<Param>| {
                if meets.get() {
                    let part = buckets.borrow().first().map(Tensor::detach);
                    param.grad.replace(part);
                }
            });
            param.after.replace(Some(hook));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Settings;
    use crate::estimate::Peaks;
    use crate::nets::{self, Sizes};
    use crate::scenario::{Data, Optimizer, Precision, Training};
    use crate::step::{Course, run};
    use crate::tape::Machine;

    #[track_caller]
    fn check(buckets: Buckets, peak: u64, reserved: u64) {
        let sizes = Sizes::from([
            ("layers", 22),
            ("hidden", 2048),
            ("heads", 32),
            ("kv", 4),
            ("ffn", 5632),
            ("vocab", 32_000),
        ]);
        let net = nets::build("llama", &sizes).unwrap();
        let data = Data {
            micro_batch: 2,
            sequence: 2048,
            ..Data::default()
        };
        let training = Training {
            precision: Precision::Bf16,
            optimizer: Optimizer::AdamWFused,
            ..Training::default()
        };
        let course = Course {
            buckets,
            ..Course::from_the_start(3)
        };
        let trace = run(&*net, &data, &training, Machine::default(), course).trace;
        let peaks = Peaks::replayed(&trace, &Settings::default());
        let highest = peaks.highest().map(|peak| peak.bytes);
        assert_eq!((highest, peaks.reserved), (Some(peak), reserved));
    }

    #[test]
    fn buckets_are_as_large_as_the_gradients_and_stay() {
        // Read from PyTorch 2.15's allocator on one of eight GPUs, and on one alone.
        check(Buckets::None, 16_098_697_728, 16_735_272_960);
        let viewed = Buckets::Viewed { mib: 25 };
        check(viewed, 18_299_838_976, 19_128_123_392);
    }
}
