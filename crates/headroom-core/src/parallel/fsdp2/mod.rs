//! `fully_shard` (torch/distributed/fsdp/_fully_shard): each module is a group of parameters that is gathered before it
//! runs and sharded again after it.

mod group;
mod hooks;
mod param;
mod plan;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::{Forward, Properties, Role, World, Wrapper, pinned};
use crate::tape::fold::Fold;
use crate::tape::{Category, DType, Param, Relay, Scope, Stream, Tape, Tensor};
use group::{ParamGroup, Unit};
use headroom_base::order;
use headroom_scenario::{Offload, PolicyType, Schedule, Trainer, Training, Wrap};
use hooks::BackwardHooks;
use param::ShardedParam;

/// The streams of `FSDPCommContext`.
const ALL_GATHER: Stream = Stream::side(1);
const REDUCE_SCATTER: Stream = Stream::side(2);
/// All-gathers of a reference model: a root of its own has its own `FSDPCommContext`.
const REFERENCE_ALL_GATHER: Stream = Stream::side(3);

/// `fully_shard` on the modules of a wrap policy and on the root.
#[derive(Debug)]
pub(crate) struct FullyShard {
    state: Rc<State>,
    reference: Option<Rc<Self>>,
}

/// What all groups share: the policy and `FSDPCommContext`.
#[derive(Debug)]
struct State {
    tape: Tape,
    world: World,
    policy: MixedPrecision,
    wrap: Wrap,
    /// Adapters wrap the model, so that its final norm is not found.
    adapters: bool,
    /// The stream of its all-gathers.
    gathers_on: Stream,
    /// Modules that the policy wraps, in the order in which they run.
    modules: RefCell<Vec<Module>>,
    groups: RefCell<Vec<Rc<ParamGroup>>>,
    /// Weights that are not sharded (`ignored_params`).
    ignored: RefCell<Vec<Tensor>>,
    /// Groups in the order in which forward ended, for backward's prefetch (`post_forward_order`).
    order: RefCell<Vec<usize>>,
    /// Buffers that are gathered and not yet copied out, of the groups to come.
    gathered: Relay,
    /// The buffer that was copied out last: freed by the next copy-out of a forward (`all_gather_state`).
    copied_out: Relay,
    /// The input of the reduce-scatter under way: freed by the next (`reduce_scatter_state`).
    reducing: Relay,
    /// Whether backward reduces gradients (`set_requires_gradient_sync`).
    reduces: Cell<bool>,
    /// Modules under way: one inside another is part of it.
    depth: Cell<u32>,
    /// The root modules: one, or a pipeline's stages that this rank has. Their groups come first.
    roots: RefCell<Vec<Scope>>,
    /// The output that a module's hook is on, and what runs in backward as its gradient arrives.
    hooked: RefCell<Option<(u32, Weak<BackwardHooks>)>>,
    /// Stages whose parameters are on the way.
    unsharding: RefCell<Vec<Scope>>,
}

/// A module that the policy wraps.
#[derive(Clone, Copy, Debug)]
struct Module {
    role: Role,
    scope: Scope,
    /// The row of equal layers that it represents.
    fold: Option<Fold>,
}

/// `MixedPrecisionPolicy`, where it requests another type than the weights'.
#[derive(Clone, Copy, Debug)]
pub(super) struct MixedPrecision {
    pub param: Option<DType>,
    pub reduce: Option<DType>,
}

impl MixedPrecision {
    pub(crate) fn of(world: &World) -> Self {
        let param = dtype(world.parallel.param_dtype);
        let reduce = dtype(world.parallel.reduce_dtype).filter(|reduce| Some(*reduce) != param);
        Self { param, reduce }
    }
}

fn dtype(policy: PolicyType) -> Option<DType> {
    match policy {
        PolicyType::Auto | PolicyType::Own => None,
        PolicyType::Fp32 => Some(DType::F32),
        PolicyType::Bf16 => Some(DType::BF16),
        PolicyType::Fp16 => Some(DType::F16),
    }
}

impl FullyShard {
    pub(crate) fn new(tape: &Tape, world: World, training: &Training) -> Self {
        // `prepare_fsdp` of TRL calls `fully_shard` on a reference once, as a whole (trl/models/utils.py).
        let mut whole = world;
        if world.trainer == Trainer::Verl {
            // `_build_model_optimizer` of verl/workers/fsdp_workers.py: as the actor, with its shards in host memory.
            whole.parallel.offload = Offload::Parameters;
        } else {
            whole.parallel.wrap = Wrap::Root;
            whole.parallel.reshard_root = true;
        }
        let reference = Self {
            state: State::new(tape, whole, false, REFERENCE_ALL_GATHER),
            reference: None,
        };
        Self {
            state: State::new(tape, world, training.lora.is_some(), ALL_GATHER),
            reference: Some(Rc::new(reference)),
        }
    }
}

impl State {
    fn new(tape: &Tape, world: World, adapters: bool, gathers_on: Stream) -> Rc<Self> {
        Rc::new(Self {
            wrap: world.wrap(),
            adapters,
            gathers_on,
            tape: tape.clone(),
            world,
            policy: MixedPrecision::of(&world),
            modules: RefCell::default(),
            groups: RefCell::default(),
            ignored: RefCell::default(),
            order: RefCell::default(),
            gathered: tape.relay(),
            copied_out: tape.relay(),
            reducing: tape.relay(),
            reduces: Cell::new(world.mesh.stages <= 1),
            depth: Cell::new(0),
            roots: RefCell::default(),
            hooked: RefCell::default(),
            unsharding: RefCell::default(),
        })
    }
}

impl Wrapper for FullyShard {
    fn properties(&self) -> Properties {
        let fsdp = &self.state;
        let parallel = &fsdp.world.parallel;
        // Several stages on a rank are gathered and freed one by one, all layers of each together.
        let one_each = [Schedule::GPipe, Schedule::OneForwardOneBackward];
        let several = fsdp.is_pipelined() && !one_each.contains(&parallel.schedule);
        let compute_dtype = fsdp.policy.param;
        Properties {
            shards_params: true,
            compute_dtype,
            // accelerate leaves autocast out with `fully_shard` too (`_prepare_fsdp2`).
            keeps_autocast: compute_dtype.is_none(),
            folds: !several && parallel.prefetch_forward == 0 && parallel.prefetch_backward <= 1,
            ..Properties::default()
        }
    }

    fn for_reference_model(&self) -> Option<Rc<dyn Wrapper>> {
        let reference = self.reference.clone()?;
        Some(reference)
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let fsdp = &self.state;
        let is_reference = |param: &Rc<Param>| {
            let reference = self.reference.as_ref();
            reference.is_some_and(|reference| reference.state.has(param.scope))
        };
        let (others, state): (Vec<_>, Vec<_>) = state.into_iter().partition(is_reference);
        let plan = fsdp.plan(tape, &state);
        let mut members: Vec<Vec<ShardedParam>> = plan.iter().map(|_| Vec::new()).collect();
        let mut sharded = Vec::with_capacity(state.len());
        // No fused step takes parameters of several meshes: experts are a group of the optimizer behind the others.
        let mut of_experts = Vec::new();
        tape.each(&state, |param| {
            if param.is_buffer() {
                sharded.push(param.clone());
                return;
            }
            if fsdp.ignores(param) {
                let data = &param.data;
                let whole =
                    tape.setting_up(|| tape.empty_as(param.name, *data.layout(), data.dtype()));
                whole.set_category(Category::Parameters);
                fsdp.ignored.borrow_mut().push(whole);
                sharded.push(param.clone());
                return;
            }
            let inside = |scope: &Scope| tape.is_inside(param.scope, *scope);
            let holds = |unit: &Unit| unit.scopes.iter().any(inside);
            // The roots, which come first, have what remains.
            let roots = fsdp.roots.borrow().len();
            // Of modules one inside another, the inner one has them.
            let at = plan.iter().rposition(holds).unwrap_or(0);
            let at = if at < roots {
                plan.iter().position(holds).unwrap_or(0)
            } else {
                at
            };
            let unit = plan.get(at);
            let of_unit = unit.and_then(|unit| unit.fold);
            let ranks = unit.map_or(1, |unit| unit.ranks);
            if param.fold != of_unit {
                // A group of many layers' parameters is not the group of one of them.
                tape.break_folds();
            }
            let param = ShardedParam::new(tape, param, ranks, &fsdp.world, fsdp.policy.param);
            if unit.is_some_and(|unit| fsdp.is_of_experts(unit)) {
                of_experts.push(param.sharded.clone());
            } else {
                sharded.push(param.sharded.clone());
            }
            if let Some(members) = members.get_mut(at) {
                members.push(param);
            }
        });
        sharded.extend(of_experts);
        let groups = plan.into_iter().zip(members);
        let groups = groups.map(|(unit, params)| Rc::new(ParamGroup::new(unit, params)));
        fsdp.groups.replace(groups.collect());
        fsdp.hook();
        if let Some(reference) = self.reference.as_ref().filter(|_| !others.is_empty()) {
            sharded.extend(reference.wrap(tape, others));
        }
        sharded
    }

    fn module(&self, role: Role, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        let fsdp = &self.state;
        let is_root = role == Role::Model;
        let within = !is_root && role != Role::Experts && fsdp.depth.get() > 1;
        if !fsdp.wraps(role) || within {
            return run(inputs);
        }
        if fsdp.tape.declaring() {
            let mut modules = fsdp.modules.borrow_mut();
            if is_root && !fsdp.roots.borrow().contains(&scope) {
                fsdp.roots.borrow_mut().push(scope);
            }
            if !is_root && !modules.iter().any(|module| module.scope == scope) {
                let fold = fsdp.tape.fold();
                modules.push(Module { role, scope, fold });
            }
            drop(modules);
            return fsdp.deeper(|| run(inputs));
        }
        let holds = |group: &Rc<ParamGroup>| group.scopes.contains(&scope);
        let at = fsdp.groups.borrow().iter().position(holds);
        let Some((at, group)) = at.and_then(|at| Some((at, fsdp.group(at)?))) else {
            return run(inputs);
        };
        // A group of several modules is gathered before the first of them and sharded after the last.
        let inputs = if group.scopes.first() == Some(&scope) {
            fsdp.pre_forward(at, &group, inputs)
        } else {
            inputs
        };
        let outputs = fsdp.deeper(|| run(inputs));
        if group.scopes.last() == Some(&scope) && !group.is_partial {
            fsdp.post_forward(at, &group, outputs, is_root)
        } else {
            outputs
        }
    }

    fn full_tensor(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        let fsdp = &self.state;
        let weight = &weight();
        if fsdp.tape.declaring() {
            // The policy wraps the head all the same.
            if fsdp.wraps(Role::Head) {
                let (scope, fold) = (weight.scope, weight.fold);
                let head = Module {
                    role: Role::Head,
                    scope,
                    fold,
                };
                fsdp.modules.borrow_mut().push(head);
            }
            return weight.tensor();
        }
        let groups = fsdp.groups.borrow();
        let shard_in = |group: &Rc<ParamGroup>| {
            let is_it = |param: &&ShardedParam| Rc::ptr_eq(&param.module, weight);
            let found = group.params.iter().find(is_it)?;
            (!group.is_unsharded()).then(|| (found.sharded.tensor(), group.ranks))
        };
        let Some((shard, ranks)) = groups.iter().find_map(shard_in) else {
            return weight.tensor();
        };
        let whole = shard.all_gather_replicated(ranks, 0);
        let rows = weight.data.size(0).min(whole.size(0));
        whole.pipe(|whole| whole.narrow(0, rows))
    }

    /// `DTensor.full_tensor` of each parameter. Adapters are merged into the shards (trl/generation/vllm_generation.py,
    /// `_iter_fsdp2_params`), which is less than a whole parameter.
    fn gather_for_export(&self, _merges: bool) {
        let groups = self.state.groups.borrow();
        let params = groups
            .iter()
            .flat_map(|group| group.params.iter().map(|param| (param, group.ranks)));
        let params = order::sorted(params, |(a, _), (b, _)| {
            a.module.storage().cmp(&b.module.storage())
        });
        let mut before = None;
        for (param, ranks) in params {
            let whole = param.sharded.tensor().detach();
            drop(before.replace(whole.all_gather_replicated(ranks, 0)));
        }
        drop(before);
    }

    fn before_pass(&self, last: bool) {
        self.state
            .reduces
            .set(last || self.state.world.parallel.sync_each);
    }

    fn after_backward(&self) {
        self.state.root_post_backward();
    }

    /// `CPUOffloadPolicy`: each shard, and its gradient.
    fn pinned(&self) -> u64 {
        if !self.state.offloads() {
            return 0;
        }
        let groups = self.state.groups.borrow();
        let params = groups.iter().flat_map(|group| &group.params);
        let each = params.map(|param| {
            let bytes = param
                .numel
                .saturating_mul(param.sharded.data.dtype().bytes());
            let tensors = 1 + u64::from(param.module.trainable);
            pinned::block(bytes)
                .saturating_mul(tensors)
                .saturating_mul(param.module.copies())
        });
        each.fold(0, u64::saturating_add)
    }

    fn unshard_stage(&self, stage: Scope) {
        let fsdp = &self.state;
        for group in fsdp.groups_of(stage) {
            if !group.is_unsharded() {
                // An explicit unshard runs on the compute stream.
                fsdp.gather(&group, Stream::COMPUTE);
            }
        }
        fsdp.unsharding.borrow_mut().push(stage);
    }

    /// The root's hook on what it returns.
    fn stage_outputs(&self, stage: Scope, outputs: Vec<Tensor>) -> Vec<Tensor> {
        let fsdp = &self.state;
        let roots = fsdp.roots.borrow().len();
        let is_stage = |group: &Rc<ParamGroup>| group.scopes.first() == Some(&stage);
        let at = fsdp.groups.borrow().iter().take(roots).position(is_stage);
        let Some((at, group)) = at.and_then(|at| Some((at, fsdp.group(at)?))) else {
            return outputs;
        };
        fsdp.hook_outputs(at, &group, outputs)
    }

    fn reshard_stage(&self, stage: Scope) {
        for group in self.state.groups_of(stage) {
            group.reshard();
        }
    }

    /// `FSDPState.finalize_backward`: gradients that backward kept unreduced are reduced, from the last module to the root.
    fn reduce_stage(&self, stage: Scope) {
        let fsdp = &self.state;
        fsdp.reduces.set(true);
        let groups = fsdp.groups_of(stage);
        let row = |group: &&Rc<ParamGroup>| group.fold;
        let reduce = |group: &Rc<ParamGroup>| fsdp.post_backward(group);
        fsdp.tape.in_rows(groups.iter().rev(), row, true, reduce);
        fsdp.reduces.set(false);
        fsdp.order.borrow_mut().clear();
        fsdp.reducing.clear();
        fsdp.copied_out.clear();
    }
}

impl State {
    /// Whether a module is in one of the roots.
    fn has(&self, scope: Scope) -> bool {
        self.tape.is_inside_any(scope, &self.roots.borrow())
    }

    fn deeper<T>(&self, body: impl FnOnce() -> T) -> T {
        self.depth.set(self.depth.get() + 1);
        let result = body();
        self.depth.set(self.depth.get() - 1);
        result
    }

    /// Whether the policy wraps modules of a role, or they are the root.
    fn wraps(&self, role: Role) -> bool {
        match role {
            Role::Model => true,
            Role::Layer => self.wrap != Wrap::Root,
            Role::Experts => self.world.mesh.expert > 1,
            Role::InputEmbedding => matches!(self.wrap, Wrap::Embedding | Wrap::Ends),
            Role::FinalNorm => self.wrap == Wrap::Ends && !self.adapters,
            Role::Head => self.wrap == Wrap::Ends,
        }
    }

    fn group(&self, at: usize) -> Option<Rc<ParamGroup>> {
        self.groups.borrow().get(at).cloned()
    }

    fn is_pipelined(&self) -> bool {
        self.world.mesh.stages > 1
    }

    fn is_root(&self, at: usize) -> bool {
        at < self.roots.borrow().len()
    }

    /// The groups of one of the root modules, its own first.
    fn groups_of(&self, root: Scope) -> Vec<Rc<ParamGroup>> {
        let inside = |group: &&Rc<ParamGroup>| {
            let first = group.scopes.first();
            first.is_some_and(|scope| self.tape.is_inside(*scope, root))
        };
        self.groups
            .borrow()
            .iter()
            .filter(inside)
            .cloned()
            .collect()
    }

    /// Waits for what a pipeline has begun to gather, once a stage is computed (`_assert_unsharded`).
    fn wait_for_stage(&self, root: Scope) {
        let mut unsharding = self.unsharding.borrow_mut();
        let Some(at) = unsharding.iter().position(|stage| *stage == root) else {
            return;
        };
        unsharding.remove(at);
        for group in self.groups_of(root) {
            self.wait_for_unshard(&group, false);
        }
    }

    fn offloads(&self) -> bool {
        self.world.parallel.offload != Offload::None
    }
}
