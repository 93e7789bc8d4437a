//! Stage 3 (deepspeed/runtime/zero/stage3.py): weights are divided too, and gathered module by module.

use headroom_base::units::RoundUp;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::bucket::Bucket;
use super::config::Config;
use super::coordinator::{Coordinator, Limits, Pass, storage, stored};
use crate::parallel::{Role, World, Wrapper, pinned};
use crate::tape::{
    Category, DType, Layout, Param, PostAccumulateGradHook, Scope, Stream, Tape, Tensor,
};
use headroom_scenario::{Offload, Trainer};

/// `DeepSpeedZeroOptimizer_Stage3` and its hooks on modules.
#[derive(Debug)]
pub struct ZeroParameters {
    state: Rc<State>,
    beside: Option<Rc<ModelBeside>>,
}

/// An engine of its own around a model that is never trained (`prepare_deepspeed` in trl/models/utils.py).
#[derive(Debug)]
struct ModelBeside(Rc<State>);

#[derive(Debug)]
struct State {
    tape: Tape,
    world: World,
    config: Config,
    params: RefCell<Vec<Rc<Param>>>,
    coordinator: RefCell<Option<Coordinator>>,
    /// Where the models stand that it is around.
    roots: RefCell<Vec<Scope>>,
    /// The head whose weight code in the model's own forward takes: from then on an external parameter of the model, which is there
    /// from its beginning (`register_external_parameter`).
    external: Cell<Option<Scope>>,
    taking: Cell<bool>,
    /// The micro-batch under way is the last of its step.
    boundary: Cell<bool>,
    /// Some parameters are not trained.
    freezes: Cell<bool>,
    /// The model under way has run its first layer.
    past_first: Cell<bool>,
    master: RefCell<Option<Rc<Param>>>,
    /// Shards, gradients of shards and the bucket: there from the start.
    kept: RefCell<Vec<Tensor>>,
    bucket: RefCell<Bucket>,
}

impl ZeroParameters {
    pub fn new(tape: &Tape, world: World) -> Self {
        // What is `auto` in its settings has not been worked out when it is prepared, and is left at DeepSpeed's defaults.
        let mut plain = world;
        plain.trainer = Trainer::Torch;
        Self {
            state: State::new(tape, world),
            beside: Some(Rc::new(ModelBeside(State::new(tape, plain)))),
        }
    }
}

impl State {
    fn new(tape: &Tape, world: World) -> Rc<Self> {
        Rc::new(Self {
            tape: tape.clone(),
            world,
            config: Config::of(&world, 3),
            params: RefCell::default(),
            coordinator: RefCell::default(),
            roots: RefCell::default(),
            external: Cell::new(None),
            taking: Cell::new(false),
            boundary: Cell::new(true),
            freezes: Cell::new(false),
            past_first: Cell::new(false),
            master: RefCell::default(),
            kept: RefCell::default(),
            bucket: RefCell::default(),
        })
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

    fn beside(&self) -> Option<Rc<dyn Wrapper>> {
        let beside = self.beside.clone()?;
        Some(beside)
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let zero = &self.state;
        let is_beside = |param: &Rc<Param>| {
            let beside = self.beside.as_ref();
            beside.is_some_and(|beside| beside.0.has(param.scope))
        };
        let (others, state): (Vec<_>, Vec<_>) = state.into_iter().partition(is_beside);
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
        zero.freezes
            .set(params.iter().any(|param| !param.trainable));
        zero.params.replace(params);
        if let Some(beside) = self.beside.as_ref().filter(|_| !others.is_empty()) {
            after.extend(beside.wrap(tape, others));
        }
        after
    }

    fn full_tensor(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        self.state.take(weight)
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
        let zero = &self.state;
        match role {
            Role::Model => return zero.called(scope, given, run),
            Role::Layer => return zero.layer(scope, given, run),
            _ => {}
        }
        let outputs = run(given);
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
        self.state.uses(param);
    }

    fn computed(&self, scope: Scope, output: Tensor) -> Tensor {
        self.state.computed(scope, output)
    }

    /// `GatheredParameters` of each parameter.
    fn read_whole(&self) {
        if let Some(coordinator) = self.state.coordinator.borrow().as_ref() {
            coordinator.read_whole();
        }
    }

    fn before_pass(&self, last: bool) {
        self.state.boundary.set(last);
    }

    fn after_backward(&self) {
        self.state.reduce_bucket();
        if let Some(coordinator) = self.state.coordinator.borrow_mut().as_mut() {
            coordinator.end();
        }
    }

    fn pinned(&self) -> u64 {
        self.state.pinned()
    }

    fn before_step(&self) {
        self.state.before_step();
    }

    fn after_step(&self) {
        if let Some(master) = self.state.master.borrow().as_ref() {
            master.grad.take();
        }
        if let Some(coordinator) = self.state.coordinator.borrow_mut().as_mut() {
            coordinator.gather_persistent();
            coordinator.drop_secondary();
        }
    }
}

impl Wrapper for ModelBeside {
    fn divides(&self) -> bool {
        true
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let zero = &self.0;
        let params = state.iter().filter(|param| !param.is_buffer());
        let params: Vec<Rc<Param>> = params.cloned().collect();
        tape.setting_up(|| zero.divide_frozen(&params));
        let coordinator = Coordinator::new(tape, zero.limits(), zero.ranks(), params.clone());
        zero.coordinator.replace(Some(coordinator));
        zero.params.replace(params);
        state
    }

    fn module(
        &self,
        role: Role,
        scope: Scope,
        given: Vec<Tensor>,
        run: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        if role == Role::Model {
            self.0.called(scope, given, run)
        } else {
            run(given)
        }
    }

    fn full_tensor(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        self.0.take(weight)
    }

    fn uses(&self, param: &Param) {
        self.0.uses(param);
    }
}

impl State {
    /// Whether a module is in a model that it is around.
    fn has(&self, scope: Scope) -> bool {
        self.tape.is_inside_any(scope, &self.roots.borrow())
    }

    fn uses(&self, param: &Param) {
        let quiet = self.tape.declaring() || self.tape.stopped() || self.taking.get();
        if param.is_buffer() || quiet {
            return;
        }
        if let Some(coordinator) = self.coordinator.borrow_mut().as_mut() {
            coordinator.enter(param.scope, Pass::Forward);
        }
    }

    /// A whole model runs forward, with which a pass begins (`_start_of_forward_hook`). What is external to its modules stays to its
    /// end, and to that of the backward where one is known to come.
    fn called(
        self: &Rc<Self>,
        scope: Scope,
        given: Vec<Tensor>,
        run: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        if self.tape.declaring() {
            self.roots.borrow_mut().push(scope);
            return run(given);
        }
        self.past_first.set(false);
        self.coordinate(|coordinator| {
            coordinator.reset();
            if let Some(head) = self.external.get() {
                coordinator.hold(head);
            }
        });
        let outputs = run(given);
        let Some(head) = self.external.get() else {
            return outputs;
        };
        let trains = outputs.iter().any(Tensor::requires_grad);
        self.coordinate(|coordinator| {
            coordinator.leave();
            if !(trains && coordinator.goes_on()) {
                coordinator.give_back();
            }
        });
        if !trains {
            return outputs;
        }
        let zero = Rc::downgrade(self);
        Tensor::hooked(outputs, move || {
            if let Some(zero) = zero.upgrade() {
                zero.coordinate(|coordinator| coordinator.hold(head));
            }
        })
    }

    /// A weight for code outside of its module's forward, whose module is then not entered.
    fn take(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        self.taking.set(true);
        let weight = weight();
        self.taking.set(false);
        if !self.tape.declaring() {
            self.external.set(Some(weight.scope));
            self.coordinate(|coordinator| {
                coordinator.leave();
                coordinator.hold(weight.scope);
            });
        }
        weight.tensor()
    }

    /// A layer runs forward. Where weights are frozen, its backward has to be told for them: of what its second forward fetches for a
    /// checkpoint, the frozen stay as long as it lasts. The first layer's input asks for a gradient where a checkpoint needs one, even
    /// in a pass without gradients (`enable_input_require_grads`).
    fn layer(
        self: &Rc<Self>,
        scope: Scope,
        given: Vec<Tensor>,
        run: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        if self.tape.declaring() || !self.freezes.get() {
            return run(given);
        }
        let first = !self.past_first.replace(true);
        let asks = first || self.tape.grad_enabled() && given.iter().any(Tensor::requires_grad);
        self.coordinate(|coordinator| coordinator.enter_layer(scope, asks));
        let outputs = run(given);
        if !outputs.iter().any(Tensor::requires_grad) {
            return outputs;
        }
        let zero = Rc::downgrade(self);
        Tensor::hooked(outputs, move || {
            if let Some(zero) = zero.upgrade() {
                zero.coordinate(|coordinator| coordinator.enter_layer_backward(scope));
            }
        })
    }

    /// A linear layer is through; the beginning of its backward is told where its weight is frozen.
    fn computed(self: &Rc<Self>, scope: Scope, output: Tensor) -> Tensor {
        if self.tape.declaring() || self.tape.stopped() || self.taking.get() {
            return output;
        }
        let mut freezes = false;
        self.coordinate(|coordinator| {
            coordinator.leave_forward(scope);
            freezes = coordinator.freezes(scope);
        });
        if !(freezes && output.requires_grad()) {
            return output;
        }
        let zero = Rc::downgrade(self);
        let hook = move || {
            if let Some(zero) = zero.upgrade() {
                zero.coordinate(|coordinator| coordinator.enter(scope, Pass::Backward));
            }
        };
        let mut outputs = Tensor::hooked(vec![output.clone()], hook);
        outputs.pop().unwrap_or(output)
    }

    fn coordinate(&self, body: impl FnOnce(&mut Coordinator)) {
        if let Some(coordinator) = self.coordinator.borrow_mut().as_mut() {
            body(coordinator);
        }
    }

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
            stream: self.stream(1),
            from_host: parallel.offload == Offload::Parameters,
            // One is DeepSpeed's default, and means none.
            secondary: match parallel.reshard_to {
                1 => 0,
                gpus => gpus.into(),
            },
            live: or(parallel.zero_live, 1_000_000_000),
            reuse: or(parallel.zero_reuse, 1_000_000_000),
            persistence: or(
                parallel.zero_persistence,
                hidden.map_or(100_000, |hidden| hidden.saturating_mul(10)),
            ),
        }
    }

    /// A stream of its own, if communication overlaps with the computation (`overlap_comm`).
    const fn stream(&self, number: u8) -> Stream {
        if self.config.overlaps {
            Stream::side(number)
        } else {
            Stream::COMPUTE
        }
    }

    fn dtype(&self) -> DType {
        let params = self.params.borrow();
        let mut trained = params.iter().filter(|param| param.trainable);
        let first = trained.next().or(params.first());
        first.map_or(DType::F32, |param| param.data.dtype())
    }

    /// Shards of the parameters that are not trained.
    fn divide_frozen(&self, params: &[Rc<Param>]) {
        let ranks = self.ranks();
        for param in params.iter().filter(|param| !param.trainable) {
            let numel = stored(param).div_ceil(ranks);
            let shard = self.tape.empty(param.name, [numel], storage(param));
            shard.set_category(Category::Parameters);
            self.kept.borrow_mut().push(shard);
        }
    }

    /// Shards of all parameters, their master weights and gradients, and the bucket.
    fn divide(&self, params: &[Rc<Param>]) -> Rc<Param> {
        let tape = &self.tape;
        let ranks = self.ranks();
        // Those that are not trained are divided too, but nothing is kept for them beside.
        self.divide_frozen(params);
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
        self.coordinate(|coordinator| {
            if !coordinator.holds(param.scope) {
                coordinator.enter(param.scope, Pass::Backward);
            }
        });
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
            let reduced = || self.tape.empty("reduce_scatter", [numel], self.dtype());
            drop(self.tape.on(self.stream(2), reduced));
        }
        for param in found {
            self.send_to_host(param);
            param.grad.take();
        }
    }

    /// `partition_grads` where the optimizer is on the host: a part of a gradient comes back from there, and its norm is taken in
    /// double precision once it is complete (`_constant_buffered_norm2`).
    fn send_to_host(&self, param: &Param) {
        const PIECE: u64 = 250_000_000;
        if self.world.parallel.offload == Offload::None {
            return;
        }
        let part = param.data.numel().div_ceil(self.ranks());
        self.tape.on(self.stream(2), || {
            let gradient = self.tape.empty("to", [part], self.dtype());
            if self.boundary.get() {
                let norm =
                    self.tape
                        .empty("_constant_buffered_norm2", [part.min(PIECE)], DType::F64);
                drop(norm);
            }
            drop(gradient);
        });
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
