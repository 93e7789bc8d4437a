//! Gradient buckets of `DistributedDataParallel` (torch/csrc/distributed/c10d/reducer.cpp).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::comm_hook::{CommHook, Ready};
use super::wrapper::{Pass, Wrapper};
use crate::nets::Model;
use crate::parallel::World;
use crate::tape::{Category, DType, Param, PostAccumulateGradHook, Tape, Tensor};
use headroom_base::order::sorted;
use headroom_scenario::Parallelism;

/// `DistributedDataParallel`: buckets as large together as the gradients, there from before the first step to the end.
pub(crate) struct Ddp {
    mib: u64,
    /// Gradients are parts of the buckets.
    views: bool,
    reducer: Rc<Reducer>,
}

/// What the parameters' hooks reach.
struct Reducer {
    buckets: RefCell<Vec<Bucket>>,
    hook: RefCell<Option<CommHook>>,
    step: Cell<u32>,
    /// Whether this backward reduces gradients: under `no_sync`, only the last of a step does.
    syncs: Cell<bool>,
    /// Buckets are reduced in their order: how many were in this backward.
    reduced: Cell<usize>,
}

/// Gradients that are reduced together.
struct Bucket {
    memory: Tensor,
    params: Vec<Rc<Param>>,
    /// How many of their gradients are still to come.
    pending: Cell<usize>,
}

/// A bucket that is being filled.
struct Open {
    bytes: u64,
    limit: u64,
    params: Vec<Rc<Param>>,
}

impl Ddp {
    /// Around the model of one of several replicas.
    pub(crate) fn of(world: &World) -> Option<Self> {
        let several = world.parallel.strategy == Parallelism::Ddp && world.mesh.data > 1;
        several.then(|| Self {
            mib: world.parallel.bucket_mb,
            views: world.parallel.bucket_view,
            reducer: Rc::new(Reducer {
                buckets: RefCell::default(),
                hook: RefCell::new(CommHook::of(world)),
                step: Cell::new(0),
                syncs: Cell::new(true),
                reduced: Cell::new(0),
            }),
        })
    }

    /// Whether it acts on each gradient as it arrives, so that equal layers are not equal to it.
    pub(crate) fn acts_in_backward(&self) -> bool {
        self.views || self.reducer.hook.borrow().is_some()
    }

    /// `rebuild_buckets`: before the second forward, in the order in which gradients came, the first of one MiB.
    fn rebuild(&self, model: &Model) {
        const FIRST: u64 = 1 << 20;
        drop(self.reducer.buckets.replace(Vec::new()));
        let limit = self.mib.saturating_mul(1 << 20);
        let buckets = Self::assigned(model, FIRST, limit);
        self.reducer.buckets.replace(buckets);
    }

    /// `compute_bucket_assignment_by_size`: a bucket is closed once it has reached its limit; each type has its own.
    fn assigned(model: &Model, first: u64, limit: u64) -> Vec<Bucket> {
        let mut open: BTreeMap<DType, Open> = BTreeMap::new();
        let mut all = Vec::new();
        let closed = |bucket: &mut Open, all: &mut Vec<Bucket>| {
            let bytes = std::mem::take(&mut bucket.bytes);
            let memory = model.tape.empty("bucket", [bytes], DType::U8);
            memory.set_category(Category::Gradients);
            all.push(Bucket {
                memory,
                params: std::mem::take(&mut bucket.params),
                pending: Cell::default(),
            });
        };
        // The last used by forward is the first whose gradient arrives.
        let params = sorted(model.trainable(), |a, b| b.storage().cmp(&a.storage()));
        // Layers that were run once for all come one after the other, each with all that it has.
        for row in params.chunk_by(|a, b| a.fold == b.fold) {
            let copies = row.first().map_or(1, |param| param.copies());
            for param in (0..copies).flat_map(|_| row) {
                let bucket = open.entry(param.data.dtype()).or_insert_with(|| Open {
                    bytes: 0,
                    limit: first,
                    params: Vec::new(),
                });
                bucket.bytes = bucket.bytes.saturating_add(param.data.bytes());
                bucket.params.push((*param).clone());
                if bucket.bytes >= bucket.limit {
                    closed(bucket, &mut all);
                    bucket.limit = limit;
                }
            }
        }
        for (_, mut bucket) in open {
            if bucket.bytes > 0 {
                closed(&mut bucket, &mut all);
            }
        }
        all
    }

    /// A gradient that has arrived is copied into its bucket; where gradients are views, the parameter is given that part of it.
    fn hook(&self, model: &Model) {
        for param in model.trainable() {
            let (reducer, views, tape) = (self.reducer.clone(), self.views, model.tape.clone());
            let hook: Rc<PostAccumulateGradHook> = Rc::new(move |param: &Rc<Param>| {
                if !reducer.syncs.get() {
                    return;
                }
                if views {
                    let buckets = reducer.buckets.borrow();
                    let layout = *param.data.layout();
                    let part = buckets
                        .first()
                        .map(|bucket| bucket.memory.as_strided(layout));
                    param.grad.replace(part);
                }
                reducer.mark_ready(&tape, param);
            });
            param.post_accumulate_grad.replace(Some(hook));
        }
    }
}

impl Reducer {
    /// All gradients of a backward are to come.
    fn prepare(&self) {
        self.reduced.set(0);
        for bucket in self.buckets.borrow().iter() {
            bucket.pending.set(bucket.params.len());
        }
    }

    /// `mark_variable_ready`: a bucket is reduced once it is complete, and those before it are.
    fn mark_ready(&self, tape: &Tape, param: &Rc<Param>) {
        let mut hook = self.hook.borrow_mut();
        let Some(hook) = hook.as_mut() else {
            return;
        };
        let buckets = self.buckets.borrow();
        let has = |bucket: &&Bucket| bucket.params.iter().any(|other| Rc::ptr_eq(other, param));
        if let Some(bucket) = buckets.iter().find(has) {
            bucket.pending.set(bucket.pending.get().saturating_sub(1));
        }
        while let Some(bucket) = buckets.get(self.reduced.get())
            && bucket.pending.get() == 0
        {
            let ready = Ready {
                place: self.reduced.get(),
                bytes: bucket.memory.bytes(),
                params: &bucket.params,
            };
            hook.run(tape, self.step.get(), ready);
            self.reduced.set(self.reduced.get() + 1);
        }
    }
}

impl Wrapper for Ddp {
    /// One bucket a type, before any gradient has arrived.
    fn wrap(&mut self, model: &Model) {
        let tape = &model.tape;
        let buckets = tape.setting_up(|| Self::assigned(model, u64::MAX, u64::MAX));
        self.reducer.buckets.replace(buckets);
        if self.acts_in_backward() {
            self.hook(model);
        }
    }

    fn before_forward(&mut self, model: &Model, pass: Pass) {
        if pass.step == 1 && pass.first {
            self.rebuild(model);
        }
    }

    fn before_backward(&mut self, pass: Pass) {
        self.reducer.syncs.set(pass.last);
        self.reducer.step.set(pass.step);
        self.reducer.prepare();
    }

    fn repeats(&self) -> bool {
        self.reducer.hook.borrow().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Settings;
    use crate::estimate::Peaks;
    use crate::nets::{self, Sizes};
    use crate::step::{RunPlan, run};
    use crate::tape::Machine;
    use headroom_scenario::{Data, Optimizer, Precision, Training};

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
