//! Stage 3 (deepspeed/runtime/zero/stage3.py): weights are divided too, and gathered module by module.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::bucket::Bucket;
use super::config::Config;
use super::coordinator::{Coordinator, Limits, Pass};
use crate::parallel::{Forward, Properties, Role, World, Wrapper};
use crate::tape::{Param, PostAccumulateGradHook, Scope, Stream, Tape, Tensor};
use headroom_scenario::{Offload, Trainer};

/// `DeepSpeedZeroOptimizer_Stage3` and its hooks on modules.
#[derive(Debug)]
pub(crate) struct ZeroParameters {
    state: Rc<State>,
    reference: Option<Rc<ReferenceEngine>>,
}

/// An engine of its own around a model that is never trained (`prepare_deepspeed` in trl/models/utils.py).
#[derive(Debug)]
struct ReferenceEngine(Rc<State>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) tape: Tape,
    pub(super) world: World,
    pub(super) config: Config,
    pub(super) params: RefCell<Vec<Rc<Param>>>,
    pub(super) coordinator: RefCell<Option<Coordinator>>,
    /// The scopes of the models that it wraps.
    pub(super) roots: RefCell<Vec<Scope>>,
    /// The head whose weight code in the model's own forward takes: from then on an external parameter of the model, which is there
    /// from its beginning (`register_external_parameter`).
    pub(super) external: Cell<Option<Scope>>,
    pub(super) taking: Cell<bool>,
    /// The micro-batch under way is the last of its step.
    pub(super) boundary: Cell<bool>,
    /// Some parameters are not trained.
    pub(super) freezes: Cell<bool>,
    /// The model under way has run its first layer.
    pub(super) past_first: Cell<bool>,
    pub(super) master: RefCell<Option<Rc<Param>>>,
    /// Shards, gradients of shards and the bucket: there from the start.
    pub(super) kept: RefCell<Vec<Tensor>>,
    pub(super) bucket: RefCell<Bucket>,
}

impl ZeroParameters {
    pub(crate) fn new(tape: &Tape, world: World) -> Self {
        // What is `auto` in its settings has not been computed when it is prepared, and is left at DeepSpeed's defaults.
        let mut plain = world;
        plain.trainer = Trainer::Torch;
        Self {
            state: State::new(tape, world),
            reference: Some(Rc::new(ReferenceEngine(State::new(tape, plain)))),
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
    fn properties(&self) -> Properties {
        Properties {
            shards_params: true,
            clips: true,
            folds: false,
            repeats: false,
            ..Properties::default()
        }
    }

    fn for_reference_model(&self) -> Option<Rc<dyn Wrapper>> {
        let reference = self.reference.clone()?;
        Some(reference)
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let zero = &self.state;
        let is_reference = |param: &Rc<Param>| {
            let reference = self.reference.as_ref();
            reference.is_some_and(|reference| reference.0.has(param.scope))
        };
        let (others, state): (Vec<_>, Vec<_>) = state.into_iter().partition(is_reference);
        let (mut after, params): (Vec<_>, Vec<_>) =
            state.into_iter().partition(|param| param.is_buffer());
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
        if let Some(reference) = self.reference.as_ref().filter(|_| !others.is_empty()) {
            after.extend(reference.wrap(tape, others));
        }
        after
    }

    fn full_tensor(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        self.state.take(weight)
    }

    /// The gradient of a trained weight shows where its module's backward begins; for frozen ends that needs
    /// a hook (`_register_pre_backward_hook`).
    fn module(&self, role: Role, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        let zero = &self.state;
        match role {
            Role::Model => return zero.called(scope, inputs, run),
            Role::Layer => return zero.layer(scope, inputs, run),
            _ => {}
        }
        let outputs = run(inputs);
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

    fn post_linear(&self, scope: Scope, output: Tensor) -> Tensor {
        self.state.post_linear(scope, output)
    }

    /// `GatheredParameters` of each parameter; of all at once where adapters are merged.
    fn gather_for_export(&self, merges: bool) {
        if let Some(coordinator) = self.state.coordinator.borrow().as_ref() {
            if merges {
                coordinator.gather_to_merge();
            } else {
                coordinator.gather_for_export();
            }
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

impl Wrapper for ReferenceEngine {
    fn properties(&self) -> Properties {
        Properties {
            shards_params: true,
            ..Properties::default()
        }
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

    fn module(&self, role: Role, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        if role == Role::Model {
            self.0.called(scope, inputs, run)
        } else {
            run(inputs)
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

    /// The model runs forward, with which a pass begins (`_start_of_forward_hook`). What is external to its modules stays to its
    /// end, and to that of the backward where one is known to come.
    fn called(self: &Rc<Self>, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        if self.tape.declaring() {
            self.roots.borrow_mut().push(scope);
            return run(inputs);
        }
        self.past_first.set(false);
        self.coordinate(|coordinator| {
            coordinator.reset();
            if let Some(head) = self.external.get() {
                coordinator.hold(head);
            }
        });
        let outputs = run(inputs);
        let Some(head) = self.external.get() else {
            return outputs;
        };
        let trains = outputs.iter().any(Tensor::requires_grad);
        self.coordinate(|coordinator| {
            coordinator.leave_module();
            if !(trains && coordinator.trace_continues()) {
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
                coordinator.leave_module();
                coordinator.hold(weight.scope);
            });
        }
        weight.tensor()
    }

    /// A layer runs forward. Where weights are frozen, a hook marks its backward: of what its second forward fetches for a
    /// checkpoint, the frozen stay as long as it lasts. The first layer's input requires a gradient where a checkpoint needs one, even
    /// in a pass without gradients (`enable_input_require_grads`).
    fn layer(self: &Rc<Self>, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        if self.tape.declaring() || !self.freezes.get() {
            return run(inputs);
        }
        let first = !self.past_first.replace(true);
        let asks = first || self.tape.grad_enabled() && inputs.iter().any(Tensor::requires_grad);
        self.coordinate(|coordinator| coordinator.enter_layer(scope, asks));
        let outputs = run(inputs);
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

    /// A linear layer is finished; if its weight is frozen, a hook marks the beginning of its backward.
    fn post_linear(self: &Rc<Self>, scope: Scope, output: Tensor) -> Tensor {
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

    pub(super) fn coordinate(&self, body: impl FnOnce(&mut Coordinator)) {
        if let Some(coordinator) = self.coordinator.borrow_mut().as_mut() {
            body(coordinator);
        }
    }

    pub(super) fn ranks(&self) -> u64 {
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
    pub(super) const fn stream(&self, number: u8) -> Stream {
        if self.config.overlaps {
            Stream::side(number)
        } else {
            Stream::COMPUTE
        }
    }
}
