//! Gradient buckets of `DistributedDataParallel` (torch/csrc/distributed/c10d/reducer.cpp).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::wrapper::{Pass, Wrapper};
use crate::nets::Model;
use crate::order::{Map, sorted};
use crate::parallel::World;
use crate::scenario::Parallelism;
use crate::tape::{Category, DType, Param, PostAccumulateGradHook, Tensor};

/// `DistributedDataParallel`: buckets as large together as the gradients, there from before the first step to the end.
pub struct Ddp {
    mib: u64,
    /// Gradients are parts of the buckets.
    pub(super) views: bool,
    buckets: Rc<RefCell<Vec<Tensor>>>,
    /// Whether this backward reduces gradients: under `no_sync`, only the last of a step does.
    syncs: Rc<Cell<bool>>,
}

impl Ddp {
    /// Around the model of one of several replicas.
    pub fn of(world: &World) -> Option<Self> {
        let several = world.parallel.strategy == Parallelism::Ddp && world.mesh.data > 1;
        several.then(|| Self {
            mib: world.parallel.bucket_mb,
            views: world.parallel.bucket_view,
            buckets: Rc::default(),
            syncs: Rc::new(Cell::new(true)),
        })
    }

    /// `rebuild_buckets`: before the second forward, in the order in which gradients came, the first of one MiB.
    fn rebuild(&self, model: &Model) {
        const FIRST: u64 = 1 << 20;
        drop(self.buckets.replace(Vec::new()));
        let limit = self.mib.saturating_mul(1 << 20);
        self.buckets.replace(Self::assigned(model, FIRST, limit));
    }

    /// `compute_bucket_assignment_by_size`: a bucket is closed once it has reached its limit; each type has its own.
    fn assigned(model: &Model, first: u64, limit: u64) -> Vec<Tensor> {
        let mut open: Map<DType, (u64, u64)> = Map::new();
        let mut all = Vec::new();
        let bucket = |bytes: u64| {
            let made = model.tape.empty("bucket", [bytes], DType::U8);
            made.set_category(Category::Gradients);
            made
        };
        // The last that forward meets is the first whose gradient comes.
        let params = sorted(model.trainable(), |a, b| b.storage().cmp(&a.storage()));
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
            let (buckets, syncs) = (self.buckets.clone(), self.syncs.clone());
            let hook: Rc<PostAccumulateGradHook> = Rc::new(move |param: &Rc<Param>| {
                if syncs.get() {
                    let buckets = buckets.borrow();
                    let layout = *param.data.layout();
                    let part = buckets.first().map(|bucket| bucket.as_strided(layout));
                    param.grad.replace(part);
                }
            });
            param.post_accumulate_grad.replace(Some(hook));
        }
    }
}

impl Wrapper for Ddp {
    /// One bucket a type, before any gradient has come.
    fn wrap(&mut self, model: &Model) {
        let tape = &model.tape;
        let buckets = tape.setting_up(|| Self::assigned(model, u64::MAX, u64::MAX));
        self.buckets.replace(buckets);
        if self.views {
            self.hook(model);
        }
    }

    fn before_forward(&mut self, model: &Model, pass: Pass) {
        if pass.step == 1 && pass.first {
            self.rebuild(model);
        }
    }

    fn before_backward(&mut self, pass: Pass) {
        self.syncs.set(pass.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Settings;
    use crate::estimate::Peaks;
    use crate::nets::{self, Sizes};
    use crate::scenario::{Data, Optimizer, Precision, Training};
    use crate::step::{RunPlan, run};
    use crate::tape::Machine;

    #[track_caller]
    fn check(world: World, peak: u64, reserved: u64) {
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
        let plan = RunPlan {
            world,
            ..RunPlan::first_steps(3)
        };
        let trace = run(&*net, &data, &training, Machine::default(), plan).trace;
        let peaks = Peaks::replayed(&trace, &Settings::default());
        let highest = peaks.highest().map(|peak| peak.bytes);
        assert_eq!((highest, peaks.reserved), (Some(peak), reserved));
    }

    #[test]
    fn buckets_are_as_large_as_the_gradients_and_stay() {
        // Read from PyTorch 2.15's allocator on one of eight GPUs, and on one alone.
        check(World::ALONE, 16_098_697_728, 16_735_272_960);
        let mut viewed = World::of(Parallelism::Ddp, 8);
        viewed.parallel.bucket_view = true;
        check(viewed, 18_299_838_976, 19_128_123_392);
    }
}
