//! Stage 3 (deepspeed/runtime/zero/stage3.py): weights are divided too, and gathered module by module.

use crate::units::RoundUp;
use std::cell::RefCell;
use std::rc::Rc;

use super::bucket::Bucket;
use super::config::Config;
use super::coordinator::{Coordinator, Limits, Pass, storage, stored};
use crate::parallel::{Role, World, Wrapper, pinned};
use crate::scenario::Offload;
use crate::tape::{Category, DType, Layout, Param, PostAccumulateGradHook, Scope, Tape, Tensor};

/// `DeepSpeedZeroOptimizer_Stage3` and its hooks on modules.
#[derive(Debug)]
pub struct ZeroParameters(Rc<State>);

#[derive(Debug)]
struct State {
    tape: Tape,
    world: World,
    config: Config,
    params: RefCell<Vec<Rc<Param>>>,
    coordinator: RefCell<Option<Coordinator>>,
    master: RefCell<Option<Rc<Param>>>,
    /// Shards, gradients of shards and the bucket: there from the start.
    kept: RefCell<Vec<Tensor>>,
    bucket: RefCell<Bucket>,
}

impl ZeroParameters {
    pub fn new(tape: &Tape, world: World) -> Self {
        Self(Rc::new(State {
            tape: tape.clone(),
            world,
            config: Config::of(&world, 3),
            params: RefCell::default(),
            coordinator: RefCell::default(),
            master: RefCell::default(),
            kept: RefCell::default(),
            bucket: RefCell::default(),
        }))
    }
}

impl Wrapper for ZeroParameters {
    fn divides(&self) -> bool {
        true
    }

    fn clips(&self) -> bool {
        true
    }

    fn folds(&self) -> bool {
        false
    }

    fn repeats(&self) -> bool {
        false
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let zero = &self.0;
        let mut after: Vec<Rc<Param>> = state
            .iter()
            .filter(|param| param.is_buffer())
            .cloned()
            .collect();
        let params: Vec<Rc<Param>> = state
            .iter()
            .filter(|param| !param.is_buffer())
            .cloned()
            .collect();
        tape.setting_up(|| after.push(zero.divide(&params)));
        // What is frozen is in no part that is stepped, and still of the model.
        after.extend(params.iter().filter(|param| !param.trainable).cloned());
        let limits = zero.limits();
        let coordinator = Coordinator::new(tape, limits, zero.ranks(), params.clone());
        zero.coordinator.replace(Some(coordinator));
        for (place, param) in params.iter().enumerate() {
            // The parameter is this one's own: a hook that held it would never go.
            let zero = Rc::downgrade(zero);
            let hook: Rc<PostAccumulateGradHook> = Rc::new(move |param| {
                if let Some(zero) = zero.upgrade() {
                    zero.reduce(place, param);
                }
            });
            param.post_accumulate_grad.replace(Some(hook));
        }
        zero.params.replace(params);
        after
    }

    /// The gradient that comes to a trained weight shows where its module's backward begins; that of frozen ends has to be
    /// told (`_register_pre_backward_hook`).
    fn module(
        &self,
        role: Role,
        scope: Scope,
        given: Vec<Tensor>,
        run: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let outputs = run(given);
        let zero = &self.0;
        let frozen = |param: &Rc<Param>| param.scope == scope && !param.trainable;
        let hooked = matches!(role, Role::Head | Role::InputEmbedding);
        let hooks = hooked && !zero.tape.declaring();
        if !hooks || !zero.params.borrow().iter().any(frozen) {
            return outputs;
        }
        let zero = Rc::downgrade(zero);
        Tensor::hooked(outputs, move || {
            if let Some(zero) = zero.upgrade()
                && let Some(coordinator) = zero.coordinator.borrow_mut().as_mut()
            {
                coordinator.enter(scope, Pass::Backward);
            }
        })
    }

    fn uses(&self, param: &Param) {
        if param.is_buffer() || self.0.tape.declaring() || self.0.tape.stopped() {
            return;
        }
        if let Some(coordinator) = self.0.coordinator.borrow_mut().as_mut() {
            coordinator.enter(param.scope, Pass::Forward);
        }
    }

    fn after_backward(&self) {
        self.0.reduce_bucket();
        if let Some(coordinator) = self.0.coordinator.borrow_mut().as_mut() {
            coordinator.reset();
        }
    }

    fn pinned(&self) -> u64 {
        self.0.pinned()
    }

    fn before_step(&self) {
        self.0.before_step();
    }

    fn after_step(&self) {
        if let Some(master) = self.0.master.borrow().as_ref() {
            master.grad.take();
        }
        if let Some(coordinator) = self.0.coordinator.borrow_mut().as_mut() {
            coordinator.gather_persistent();
        }
    }
}

impl State {
    fn ranks(&self) -> u64 {
        u64::from(self.world.mesh.shard).max(1)
    }

    /// `DeepSpeedZeroConfig`'s defaults, and what transformers puts for `auto`.
    fn limits(&self) -> Limits {
        let parallel = &self.world.parallel;
        let or = |given: u64, default: u64| if given > 0 { given } else { default };
        let hidden = self.config.hidden;
        let square = |hidden: u64| hidden.saturating_mul(hidden) / 10 * 9;
        Limits {
            prefetch: match parallel.zero_prefetch {
                0 => hidden.map_or(50_000_000, square),
                // No parameter is so small: nothing is gathered ahead.
                1 => 0,
                given => given,
            },
            live: or(parallel.zero_live, 1_000_000_000),
            reuse: or(parallel.zero_reuse, 1_000_000_000),
            persistence: or(
                parallel.zero_persistence,
                hidden.map_or(100_000, |hidden| hidden.saturating_mul(10)),
            ),
        }
    }

    fn dtype(&self) -> DType {
        let params = self.params.borrow();
        let mut trained = params.iter().filter(|param| param.trainable);
        let first = trained.next().or(params.first());
        first.map_or(DType::F32, |param| param.data.dtype())
    }

    /// Shards of all parameters, their master weights and gradients, and the bucket.
    fn divide(&self, params: &[Rc<Param>]) -> Rc<Param> {
        let tape = &self.tape;
        let ranks = self.ranks();
        // Those that are not trained are divided too, but nothing is kept for them beside.
        let frozen = params.iter().filter(|param| !param.trainable);
        for param in frozen {
            let shard = tape.empty(param.name, [stored(param).div_ceil(ranks)], storage(param));
            shard.set_category(Category::Parameters);
            self.kept.borrow_mut().push(shard);
        }
        let trained = || params.iter().filter(|param| param.trainable);
        let shards = trained().map(|param| param.data.numel().div_ceil(ranks));
        let part = shards.fold(0, u64::saturating_add);
        let count = trained().map(|param| param.count);
        let count = count.fold(0, u64::saturating_add);
        let dtype = trained()
            .next()
            .map_or(DType::F32, |param| param.data.dtype());
        let offload = self.world.parallel.offload;
        let keep = |tensor: Tensor, category| {
            tensor.set_category(category);
            self.kept.borrow_mut().push(tensor);
        };
        if offload != Offload::Parameters {
            let shards = tape.empty("defragment", [part], dtype);
            keep(shards, Category::Parameters);
        }
        let bytes = if offload == Offload::None {
            part.saturating_mul(self.config.master.bytes())
        } else {
            0
        };
        let master = tape.master(
            "partition",
            Layout::contiguous([part]),
            self.config.master,
            bytes,
            count,
        );
        self.master.replace(Some(master.clone()));
        if self.config.contiguous {
            let bucket = tape.empty("ipg_bucket", [self.config.reduce_bucket], dtype);
            self.bucket.borrow_mut().buffers.push(bucket);
        }
        if offload == Offload::None {
            let gradients = tape.empty("grad_partitions_flat_buffer", [part], dtype);
            keep(gradients, Category::Gradients);
        }
        master
    }

    /// Master weights, those of a sub-group flat (`_create_fp16_sub_groups`), and the gradients of all; with the parameters there
    /// too, these flat, and the blocks in which each was before.
    fn pinned(&self) -> u64 {
        const SUB_GROUP: u64 = 1_000_000_000;
        let offload = self.world.parallel.offload;
        if offload == Offload::None {
            return 0;
        }
        let limit = match self.world.parallel.zero_subgroup {
            0 => SUB_GROUP,
            given => given,
        };
        let params = self.params.borrow();
        let trained = params.iter().filter(|param| param.trainable);
        let ranks = self.ranks();
        let part = |param: &Rc<Param>| param.data.numel().div_ceil(ranks);
        let (mut groups, mut all, mut open) = (Vec::new(), 0_u64, 0_u64);
        for param in trained {
            all = all.saturating_add(part(param));
            open = open.saturating_add(part(param));
            if open >= limit {
                groups.push(std::mem::take(&mut open));
            }
        }
        groups.push(open);
        let size = self.dtype().bytes();
        let master = self.config.master.bytes();
        let masters = pinned::blocks(groups.iter().map(|numel| numel.saturating_mul(master)));
        let flat = pinned::block(all.saturating_mul(size));
        let gradients = masters.saturating_add(flat);
        if offload != Offload::Parameters {
            return gradients;
        }
        let each = params.iter().map(|param| part(param).saturating_mul(size));
        gradients
            .saturating_add(flat)
            .saturating_add(pinned::blocks(each))
    }

    /// A gradient has come: backward is through its module, and it waits in the bucket.
    fn reduce(&self, place: usize, param: &Rc<Param>) {
        if let Some(coordinator) = self.coordinator.borrow_mut().as_mut() {
            coordinator.enter(param.scope, Pass::Backward);
        }
        let numel = param.data.numel();
        let limit = self.config.reduce_bucket;
        if !self.bucket.borrow().takes(numel, limit) {
            self.reduce_bucket();
        }
        let mut bucket = self.bucket.borrow_mut();
        if let Some(buffer) = bucket.buffers.first().filter(|_| numel <= limit) {
            let part = buffer.detach();
            drop(param.grad.replace(Some(part)));
        }
        bucket.push((0, place), numel);
    }

    /// `__reduce_and_partition_ipg_grads`: parts of several gradients are interleaved in a tensor that is reduced.
    fn reduce_bucket(&self) {
        let members = self.bucket.borrow_mut().drain();
        let params = self.params.borrow();
        let ranks = self.ranks();
        let found: Vec<&Rc<Param>> = members
            .iter()
            .filter_map(|(_, place)| params.get(*place))
            .collect();
        let sizes = found.iter().map(|param| param.data.numel());
        let whole = sizes.clone().all(|numel| numel % ranks == 0);
        if found.len() > 1 || !whole {
            let padded = sizes.map(|numel| numel.round_up(ranks));
            let numel = padded.fold(0, u64::saturating_add);
            drop(self.tape.empty("reduce_scatter", [numel], self.dtype()));
        }
        for param in found {
            param.grad.take();
        }
    }

    /// The norm in double precision, a shard at a time; then the flat gradient in the master weights' type.
    fn before_step(&self) {
        let tape = &self.tape;
        let Some(master) = self.master.borrow().clone() else {
            return;
        };
        if self.world.parallel.offload != Offload::None {
            return;
        }
        let ranks = self.ranks();
        let params = self.params.borrow();
        for param in params.iter().filter(|param| param.trainable) {
            let numel = param.data.numel().div_ceil(ranks);
            drop(tape.empty("get_grad_norm_direct", [numel], DType::F64));
        }
        let part = master.data.numel();
        let flat = tape.empty("flatten", [part], self.dtype());
        let gradient = if self.dtype() == self.config.master {
            flat
        } else {
            flat.then(|flat| flat.tape().empty("to", [part], self.config.master))
        };
        gradient.set_category(Category::Gradients);
        master.grad.replace(Some(gradient));
    }
}
