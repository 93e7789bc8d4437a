//! `FullyShardedDataParallel(use_orig_params=True)` (torch/distributed/fsdp/_flat_param.py and _runtime_utils.py): the
//! parameters of a module are one flat parameter, of which each rank keeps a chunk.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::fsdp2::MixedPrecision;
use super::{Forward, Properties, Role, World, Wrapper, is_accelerate, pinned};
use crate::tape::{Category, DType, Layout, Param, Scope, Stream, Tape, Tensor};
use headroom_scenario::{Offload, Quantization, Training, Wrap};

const UNSHARD: Stream = Stream::side(1);
const PRE_UNSHARD: Stream = Stream::side(2);
const POST_BACKWARD: Stream = Stream::side(3);

/// The root module and the modules of a wrap policy.
#[derive(Debug)]
pub(crate) struct FullyShardedDataParallel(Rc<State>);

#[derive(Debug)]
struct State {
    tape: Tape,
    world: World,
    /// Adapters are in flat parameters of their own, as PEFT's `fsdp_auto_wrap_policy` has it, which transformers' trainers set;
    /// whoever shards a quantised base has such a policy, too. Elsewhere what is frozen has gradients with them.
    adapters_apart: bool,
    policy: MixedPrecision,
    modules: RefCell<Vec<Scope>>,
    units: RefCell<Vec<Rc<Unit>>>,
    /// Units in the order in which forward left them.
    order: RefCell<Vec<usize>>,
    syncs: Cell<bool>,
    depth: Cell<u32>,
}

/// A module that is gathered at once.
#[derive(Debug)]
struct Unit {
    scope: Scope,
    is_root: bool,
    reshards: bool,
    handles: Vec<Handle>,
    /// Backward has not come past it.
    waiting: Cell<bool>,
    /// It ran with a graph, so that backward will ask for it (`_needs_pre_backward_unshard`).
    expected: Cell<bool>,
    /// Inputs that are leaves, with their gradients: the hook that frees what is frozen is on the nodes that accumulate these
    /// (`_register_post_backward_reshard_only_hook`), and is kept until backward has ended.
    hooked: RefCell<Vec<Rc<Param>>>,
}

/// `FlatParamHandle`.
#[derive(Debug)]
struct Handle {
    /// The model's parameters, and the part of each in this rank's chunk.
    params: Vec<(Rc<Param>, Rc<Param>)>,
    /// Elements of the chunk.
    chunk: u64,
    loaded: DType,
    computed: DType,
    /// This rank's chunk, unless it is on the host.
    _local: Option<Tensor>,
    unsharded: RefCell<Option<Tensor>>,
    /// The gradient of passes that did not reduce.
    accumulated: RefCell<Option<Tensor>>,
    /// The reduced gradient, which outlives the step (`_saved_grad_shard`).
    saved: RefCell<Option<Tensor>>,
}

impl FullyShardedDataParallel {
    pub(crate) fn new(tape: &Tape, world: World, training: &Training) -> Self {
        Self(Rc::new(State {
            tape: tape.clone(),
            adapters_apart: training.lora.is_some()
                && (is_accelerate(world.trainer) || training.quantization != Quantization::None),
            world,
            policy: MixedPrecision::of(&world),
            modules: RefCell::default(),
            units: RefCell::default(),
            order: RefCell::default(),
            syncs: Cell::new(true),
            depth: Cell::new(0),
        }))
    }
}

impl Wrapper for FullyShardedDataParallel {
    fn properties(&self) -> Properties {
        let compute_dtype = self.0.policy.param;
        Properties {
            shards_params: true,
            compute_dtype,
            // accelerate puts autocast around the model whatever wraps it, but for `fully_shard` (`prepare_model`).
            keeps_autocast: compute_dtype.is_none() || is_accelerate(self.0.world.trainer),
            runs_in_checkpoints: true,
            folds: false,
            ..Properties::default()
        }
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let fsdp = &self.0;
        let (mut after, mut rest): (Vec<_>, Vec<_>) =
            state.into_iter().partition(|param| param.is_buffer());
        tape.setting_up(|| {
            let mut units = Vec::new();
            for &scope in fsdp.modules.borrow().iter() {
                let (mine, others) = rest
                    .into_iter()
                    .partition(|param| tape.is_inside(param.scope, scope));
                rest = others;
                units.push(fsdp.unit(scope, false, mine));
            }
            units.insert(0, fsdp.unit(Scope::default(), true, rest));
            let handles = units.iter().flat_map(|unit: &Unit| &unit.handles);
            for handle in handles {
                after.extend(handle.params.iter().map(|(_, shard)| shard.clone()));
            }
            fsdp.units.replace(units.into_iter().map(Rc::new).collect());
        });
        after
    }

    fn module(&self, role: Role, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        let fsdp = &self.0;
        let is_root = role == Role::Model;
        let wrapped = is_root || role == Role::Layer && fsdp.world.parallel.wrap != Wrap::Root;
        if !wrapped || !is_root && fsdp.depth.get() > 1 {
            return run(inputs);
        }
        let deeper = |inputs| {
            fsdp.depth.set(fsdp.depth.get() + 1);
            let outputs = run(inputs);
            fsdp.depth.set(fsdp.depth.get() - 1);
            outputs
        };
        if fsdp.tape.declaring() {
            if !is_root {
                fsdp.modules.borrow_mut().push(scope);
            }
            return deeper(inputs);
        }
        let units = fsdp.units.borrow();
        let at = units.iter().position(|unit| unit.scope == scope);
        let found = at.and_then(|at| Some((at, units.get(at)?.clone())));
        drop(units);
        let Some((at, unit)) = found else {
            return run(inputs);
        };
        let inputs = fsdp.pre_forward(&unit, inputs);
        let outputs = deeper(inputs);
        fsdp.post_forward(at, &unit, outputs)
    }

    fn before_pass(&self, last: bool) {
        self.0.syncs.set(last || self.0.world.parallel.sync_each);
    }

    fn after_backward(&self) {
        let units = self.0.units.borrow().clone();
        for unit in units {
            if unit.waiting.get() {
                self.0.post_backward(&unit);
            }
            unit.hooked.take();
            // `prepare_gradient_for_optim`.
            for handle in unit.handles.iter().filter(|_| self.0.offloads()) {
                handle.saved.take();
            }
        }
        self.0.order.borrow_mut().clear();
    }

    /// Each chunk and its `_cpu_grad`, which frozen ones have, too.
    fn pinned(&self) -> u64 {
        let fsdp = &self.0;
        if !fsdp.offloads() {
            return 0;
        }
        let units = fsdp.units.borrow();
        let handles = units.iter().flat_map(|unit| &unit.handles);
        let each = handles.map(|handle| {
            let bytes = handle.chunk.saturating_mul(handle.loaded.bytes());
            pinned::block(bytes).saturating_mul(2)
        });
        each.fold(0, u64::saturating_add)
    }
}

impl State {
    /// A module's flat parameter. Where adapters are wrapped apart from what they adapt, a layer's are gathered as one here.
    fn unit(&self, scope: Scope, is_root: bool, params: Vec<Rc<Param>>) -> Unit {
        let (apart, rest) = params
            .into_iter()
            .partition(|param| self.adapters_apart && param.trainable);
        let parts = [rest, apart].into_iter();
        let parts = parts.filter(|params: &Vec<_>| !params.is_empty());
        Unit {
            scope,
            is_root,
            reshards: self.world.parallel.reshard && !is_root,
            handles: parts.map(|params| self.flatten(params)).collect(),
            waiting: Cell::new(false),
            expected: Cell::new(false),
            hooked: RefCell::default(),
        }
    }

    /// Parameters are joined in one, of which this rank's chunk is kept.
    fn flatten(&self, params: Vec<Rc<Param>>) -> Handle {
        let tape = &self.tape;
        let ranks = u64::from(self.world.mesh.shard).max(1);
        let rank = u64::from(self.world.rank.shard);
        let dtype = params
            .first()
            .map_or(DType::F32, |param| param.data.dtype());
        // accelerate keeps what is trained in fp32 where it computes in a half type (`prepare_model`).
        let upcasts = self.policy.param.is_some() && is_accelerate(self.world.trainer);
        let trained = params.iter().any(|param| param.trainable);
        let loaded = if upcasts && trained && dtype.is_floating() {
            DType::F32
        } else {
            dtype
        };
        // Four-bit weights are stored in the type of what they are joined with (`bnb_4bit_quant_storage`): so many of its elements.
        let elements = |param: &Param| {
            let numel = param.data.numel();
            if loaded.is_floating() && param.data.dtype() == DType::U8 {
                numel.div_ceil(dtype.bytes())
            } else {
                numel
            }
        };
        let sizes = params.iter().map(|param| elements(param));
        let numel = sizes.fold(0, u64::saturating_add);
        let chunk = numel.div_ceil(ranks);
        let local = (!self.offloads()).then(|| {
            let local = tape.empty("flat_param", [chunk], loaded);
            local.set_category(Category::Parameters);
            local
        });
        let (start, mut begin) = (chunk.saturating_mul(rank), 0_u64);
        let end = start.saturating_add(chunk);
        let params = params.into_iter().map(|param| {
            let until = begin.saturating_add(elements(&param));
            let here = until.min(end).saturating_sub(begin.max(start));
            begin = until;
            if let Some(cast) = self.policy.param {
                param.cast(cast);
            }
            let layout = Layout::contiguous([here]);
            let outer = tape.enter(param.scope);
            let shard = tape.shard(&param, layout, loaded, 0);
            tape.enter(outer);
            (param, shard)
        });
        Handle {
            params: params.collect(),
            chunk,
            loaded,
            // Weights in bytes are gathered as they are.
            computed: self
                .policy
                .param
                .filter(|_| loaded.is_floating())
                .unwrap_or(loaded),
            _local: local,
            unsharded: RefCell::default(),
            accumulated: RefCell::default(),
            saved: RefCell::default(),
        }
    }

    /// `CPUOffload(offload_params=True)`: chunks, their gradients and the optimizer are the host's.
    fn offloads(&self) -> bool {
        self.world.parallel.offload != Offload::None
    }

    fn padded(&self, handle: &Handle) -> u64 {
        handle
            .chunk
            .saturating_mul(u64::from(self.world.mesh.shard).max(1))
    }

    /// `_unshard`: the chunk is cast where the policy requests it, or comes from the host, and is gathered straight into the flat
    /// parameter.
    fn unshard(&self, handle: &Handle) {
        if handle.unsharded.borrow().is_some() || handle.params.is_empty() {
            return;
        }
        let casts = handle.computed != handle.loaded;
        let low = (casts || self.offloads()).then(|| {
            self.tape.on(PRE_UNSHARD, || {
                self.tape.empty("mp_shard", [handle.chunk], handle.computed)
            })
        });
        let whole = self.tape.on(UNSHARD, || {
            self.tape
                .empty("unshard", [self.padded(handle)], handle.computed)
        });
        whole.set_category(Category::Parameters);
        handle.unsharded.replace(Some(whole));
        drop(low);
    }

    fn unshard_unit(&self, unit: &Unit) {
        for handle in &unit.handles {
            self.unshard(handle);
        }
    }

    fn pre_forward(self: &Rc<Self>, unit: &Rc<Unit>, inputs: Vec<Tensor>) -> Vec<Tensor> {
        if unit.is_root {
            let units = self.units.borrow();
            for handle in units.iter().flat_map(|unit| &unit.handles) {
                handle.saved.take();
            }
        }
        let inputs: Vec<Tensor> = inputs
            .into_iter()
            .map(|input| match self.policy.param {
                // `cast_root_forward_inputs` alone is on by default.
                Some(dtype) if unit.is_root && input.dtype().is_floating() => input.to(dtype),
                _ => input,
            })
            .collect();
        self.unshard_unit(unit);
        unit.waiting.set(true);
        if !self.tape.grad_enabled() || !inputs.iter().any(Tensor::requires_grad) {
            return inputs;
        }
        if unit.is_frozen() {
            let leaves = inputs.iter().filter_map(Tensor::leaf_param);
            unit.hooked.borrow_mut().extend(leaves);
        }
        let (this, unit) = (self.clone(), unit.clone());
        Tensor::hooked(inputs, move || this.post_backward(&unit))
    }

    fn post_forward(
        self: &Rc<Self>,
        at: usize,
        unit: &Rc<Unit>,
        outputs: Vec<Tensor>,
    ) -> Vec<Tensor> {
        if unit.reshards {
            unit.reshard();
        }
        // Its place is that of its first run.
        let mut order = self.order.borrow_mut();
        if !order.contains(&at) {
            order.push(at);
        }
        drop(order);
        unit.expected.set(outputs.iter().any(Tensor::requires_grad));
        let outputs = outputs.into_iter().flat_map(|output| {
            if !output.requires_grad() {
                return vec![output];
            }
            let (this, unit) = (self.clone(), unit.clone());
            Tensor::hooked(vec![output], move || this.pre_backward(at, &unit))
        });
        outputs.collect()
    }

    /// The flat parameter is gathered again, and that of the module before it ahead (`BackwardPrefetch.BACKWARD_PRE`). accelerate
    /// and transformers turn that off by default (`NO_PREFETCH`).
    fn pre_backward(&self, at: usize, unit: &Unit) {
        self.unshard_unit(unit);
        if is_accelerate(self.world.trainer) {
            return;
        }
        let order = self.order.borrow();
        let place = order.iter().rposition(|other| *other == at);
        let before = place.and_then(|place| place.checked_sub(1));
        let target = before.and_then(|place| order.get(place).copied());
        let target = target.and_then(|at| self.units.borrow().get(at).cloned());
        drop(order);
        if let Some(target) = target.filter(|target| target.waiting.get() && target.expected.get())
        {
            self.unshard_unit(&target);
        }
    }

    /// The gradients of the parameters' views are joined in that of the flat parameter, which is reduced.
    fn post_backward(&self, unit: &Unit) {
        unit.waiting.set(false);
        for handle in &unit.handles {
            self.reduce(handle);
        }
    }

    fn reduce(&self, handle: &Handle) {
        let tape = &self.tape;
        let mut gradients: Vec<Tensor> = Vec::new();
        gradients.extend(
            handle
                .params
                .iter()
                .filter_map(|(param, _)| param.grad.take()),
        );
        if gradients.is_empty() {
            handle.unsharded.take();
            return;
        }
        let padded = self.padded(handle);
        // Autograd runs on the stream on which the views were taken of what was gathered.
        let joined = tape.on(UNSHARD, || tape.empty("cat", [padded], handle.computed));
        drop(gradients);
        let gradient = match handle.accumulated.take() {
            Some(sum) => sum.add_in_place(&joined),
            None => joined,
        };
        handle.unsharded.take();
        if !self.syncs.get() {
            gradient.set_category(Category::Gradients);
            handle.accumulated.replace(Some(gradient));
            return;
        }
        tape.on(POST_BACKWARD, || {
            let reduce = self.policy.reduce.unwrap_or(handle.computed);
            let cast = gradient.to(reduce);
            let shard = tape.empty("reduce_scatter", [handle.chunk], reduce);
            drop(cast);
            let shard = shard.pipe(|shard| shard.to(handle.loaded));
            shard.set_category(Category::Gradients);
            let sum = match handle.saved.take() {
                Some(before) => before.add_in_place(&shard),
                None => shard,
            };
            // `_offload_grad`: the host's copy is what the optimizer sees.
            let seen = handle.params.iter().filter(|_| !self.offloads());
            for (_, param) in seen {
                let part = sum.as_strided(*param.data.layout());
                param.grad.replace(Some(part));
            }
            handle.saved.replace(Some(sum));
        });
        drop(gradient);
    }
}

impl Unit {
    /// Whether the module's own parameters are not trained; adapters in it are units of their own.
    fn is_frozen(&self) -> bool {
        let own = self.handles.first();
        own.is_some_and(|own| own.params.iter().all(|(param, _)| !param.trainable))
    }

    fn reshard(&self) {
        for handle in &self.handles {
            handle.unsharded.take();
        }
    }
}
