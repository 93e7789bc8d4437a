//! Which of stage 3's parameters are gathered, and when they go again
//! (deepspeed/runtime/zero/partitioned_param_coordinator.py).

use headroom_base::units::RoundUp;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::order::Order;
use crate::tape::{DType, Param, Scope, Stream, Tape, Tensor};

/// What stage 3 does in Python around one pass of a module: its hooks, and those of nearby modules without weights.
pub(crate) const MODULE_HOOKS: &str = "zero_hooks";

/// The limits of `zero_optimization`, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub prefetch: u64,
    pub live: u64,
    pub reuse: u64,
    /// Parameters no larger are never divided.
    pub persistence: u64,
    /// The stream of the gathers: a side stream if communication overlaps with computation (`overlap_comm`).
    pub stream: Stream,
    /// Shards are on the host, and sent to the device to be gathered.
    pub from_host: bool,
    /// What has been gathered once is kept divided over this many GPUs alone, from which it is gathered again
    /// (`zero_hpz_partition_size`); zero stands for none.
    pub secondary: u64,
}

/// `ZeroParamStatus`.
#[derive(Debug)]
pub(super) enum Status {
    NotAvailable,
    /// Gathered in a buffer with others, out of which all are copied when the first is waited for.
    Inflight(Rc<Tensor>),
    /// Gathered straight into its place, and nobody has waited for it.
    InflightAlone(Tensor),
    /// Its memory, and the buffer as long as nobody has waited for it.
    Available {
        _memory: Tensor,
        buffer: Option<Rc<Tensor>>,
    },
}

/// Whether a module runs forward, perhaps once more, or backward: each fetches its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    Backward,
}

/// The modules of a pass, as long as they are not known and once they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    Invalid,
    Recording,
    Complete,
}

/// `PartitionedParameterCoordinator`.
#[derive(Debug)]
pub(super) struct Coordinator {
    pub(super) tape: Tape,
    pub(super) limits: Limits,
    pub(super) ranks: u64,
    /// The parameters and their status.
    pub(super) params: Vec<(Rc<Param>, Status)>,
    /// This rank's part of each parameter within its group, where there is one (`ds_secondary_tensor`).
    pub(super) secondary: Vec<Option<Tensor>>,
    /// The parameters of each module.
    pub(super) members: BTreeMap<Scope, Vec<usize>>,
    pub(super) trace: Trace,
    /// The modules in the order in which they are fetched.
    pub(super) order: Order<Scope>,
    /// Parameters to come, with the step in which each is used.
    pub(super) queue: VecDeque<(usize, usize)>,
    /// The step for which each parameter was fetched last.
    pub(super) fetched_for: Vec<Option<usize>>,
    pub(super) step: usize,
    pub(super) available: u64,
    /// Parameters that were gathered for code outside of their module, until the model is finished.
    pub(super) held: Vec<usize>,
    /// The module under way.
    pub(super) current: Option<(Scope, Pass)>,
    /// Whether DeepSpeed notices the end of a module's backward: its last forward counted inputs that require a gradient (`ds_grads_remaining`).
    pub(super) counted: BTreeMap<Scope, bool>,
    /// The layer whose backward runs, and whose forward may run again in it.
    pub(super) layer: Option<Scope>,
    /// Frozen parameters that the layer's second forward has fetched: they stay to the end of its backward (`ds_recompute_parameters`).
    pub(super) of_layer: Vec<usize>,
    /// Parameters of modules considered active (`ds_active_sub_modules`): no other module's end releases them.
    pub(super) active: Vec<bool>,
}

impl Coordinator {
    pub(crate) fn new(tape: &Tape, limits: Limits, ranks: u64, params: Vec<Rc<Param>>) -> Self {
        let mut members: BTreeMap<Scope, Vec<usize>> = BTreeMap::new();
        for (at, param) in params.iter().enumerate() {
            members.entry(param.scope).or_default().push(at);
        }
        let mut new = Self {
            members,
            tape: tape.clone(),
            limits,
            ranks,
            secondary: vec![None; params.len()],
            fetched_for: vec![None; params.len()],
            active: vec![false; params.len()],
            params: params
                .into_iter()
                .map(|param| (param, Status::NotAvailable))
                .collect(),
            trace: Trace::Invalid,
            order: Order::default(),
            queue: VecDeque::new(),
            step: 0,
            available: 0,
            held: Vec::new(),
            current: None,
            counted: BTreeMap::new(),
            layer: None,
            of_layer: Vec::new(),
        };
        tape.setting_up(|| (0..new.params.len()).for_each(|at| new.keep_secondary(at)));
        new
    }

    /// `invalidate_secondary_tensor`: the copies of what has been stepped are stale.
    pub(crate) fn drop_secondary(&mut self) {
        for ((param, _), kept) in self.params.iter().zip(&mut self.secondary) {
            if param.trainable {
                kept.take();
            }
        }
    }

    /// A module's parameters are used, in forward or in backward: those of the one before have been.
    pub(crate) fn enter(&mut self, module: Scope, pass: Pass) {
        if self.current == Some((module, pass)) {
            return;
        }
        self.leave_module();
        match pass {
            Pass::Forward => {
                self.counted.insert(module, self.tape.grad_enabled());
            }
            Pass::Backward => {
                let layer = self.layer;
                if layer.is_some_and(|layer| !self.tape.is_inside(module, layer)) {
                    self.leave_layer();
                }
            }
        }
        self.current = Some((module, pass));
        self.tape.host_call(MODULE_HOOKS);
        self.fetch(module);
        if pass == Pass::Forward && self.layer.is_some() {
            for at in self.of(module) {
                if !self.trains(at) && self.activate(at) {
                    self.of_layer.push(at);
                }
            }
        }
    }

    /// The current module is finished. DeepSpeed does not notice the end of its backward if its last forward was without gradients.
    pub(crate) fn leave_module(&mut self) {
        let Some((module, pass)) = self.current.take() else {
            return;
        };
        if pass == Pass::Backward && !self.is_counted(module) {
            for at in self.of(module) {
                self.activate(at);
            }
        }
        self.release(module);
    }

    /// The same, if it is this module's forward.
    pub(crate) fn leave_forward(&mut self, module: Scope) {
        if self.current == Some((module, Pass::Forward)) {
            self.leave_module();
        }
    }

    /// A layer runs forward, on inputs of which some may require a gradient.
    pub(crate) fn enter_layer(&mut self, layer: Scope, asks: bool) {
        self.counted.insert(layer, asks);
    }

    /// A layer's backward begins.
    pub(crate) fn enter_layer_backward(&mut self, layer: Scope) {
        self.leave_module();
        self.leave_layer();
        self.layer = Some(layer);
    }

    /// A layer's backward is finished: what its second forward fetched is released, if DeepSpeed notices the end.
    fn leave_layer(&mut self) {
        let Some(layer) = self.layer.take() else {
            return;
        };
        let of_layer = std::mem::take(&mut self.of_layer);
        if !self.is_counted(layer) {
            return;
        }
        for at in of_layer {
            if let Some(active) = self.active.get_mut(at) {
                *active = false;
            }
            if !self.persists(at) {
                self.release_param(at);
            }
        }
    }

    fn is_counted(&self, module: Scope) -> bool {
        self.counted.get(&module).copied().unwrap_or(true)
    }

    /// Takes a parameter's module to be under way; whether it was not before.
    fn activate(&mut self, at: usize) -> bool {
        match self.active.get_mut(at) {
            Some(active) => !std::mem::replace(active, true),
            None => false,
        }
    }

    /// Whether a module has parameters that are not trained.
    pub(crate) fn freezes(&self, module: Scope) -> bool {
        self.of(module).iter().any(|at| !self.trains(*at))
    }

    fn trains(&self, at: usize) -> bool {
        self.params
            .get(at)
            .is_some_and(|(param, _)| param.trainable)
    }

    /// Gathers what a module outside of its own forward needs, where it is not there already, and holds it (an external parameter of
    /// the module that is under way).
    pub(crate) fn hold(&mut self, module: Scope) {
        for at in self.of(module) {
            if self.is_missing(at) {
                self.gather(&[at]);
                self.wait(at);
                self.held.push(at);
            }
        }
    }

    /// Frees what is held.
    pub(crate) fn give_back(&mut self) {
        for at in std::mem::take(&mut self.held) {
            self.partition(at);
            self.available = self.available.saturating_sub(self.numel(at));
        }
    }

    /// Whether something of a module is held.
    pub(crate) fn holds(&self, module: Scope) -> bool {
        self.of(module).iter().any(|at| self.held.contains(at))
    }

    /// Whether the recorded pass continues: with a backward after the finished forward.
    pub(crate) fn trace_continues(&self) -> bool {
        self.trace == Trace::Complete && self.step < self.order.modules.len()
    }

    /// Gathers the parameters one by one; each is freed once the next is gathered.
    pub(crate) fn gather_for_export(&self) {
        let mut before = None;
        for (at, (param, _)) in self.params.iter().enumerate() {
            let numel = self.numel(at).round_up(self.ranks.max(1));
            let gather = || self.tape.empty("all_gather", [numel], storage(param));
            drop(before.replace(self.tape.on(self.limits.stream, gather)));
        }
        drop(before);
    }

    /// Gathers all parameters at once, each by itself (`_allgather_params_coalesced` in
    /// deepspeed/runtime/zero/partition_parameters.py), and merges the adapters into them and out again
    /// (`get_delta_weight` in peft/tuners/lora/layer.py): the product, and its scaled copy.
    pub(crate) fn gather_to_merge(&self) {
        let missing = (0..self.params.len()).filter(|at| self.is_missing(*at));
        let whole: Vec<Tensor> = missing
            .filter_map(|at| {
                let (param, _) = self.params.get(at)?;
                let numel = self.numel(at).round_up(self.ranks.max(1));
                Some(self.tape.empty("all_gather", [numel], storage(param)))
            })
            .collect();
        for _merged_and_taken_off in 0..2 {
            for (param, _) in &self.params {
                if let Some(dtype) = self.adapter_of(param) {
                    let product = self.tape.empty("mm", [param.data.numel()], dtype);
                    let scaled = self.tape.empty("mul", [param.data.numel()], dtype);
                    drop((product, scaled));
                }
            }
        }
        drop(whole);
    }

    /// The type of the low-rank matrices beside a frozen weight, where it has some.
    fn adapter_of(&self, weight: &Param) -> Option<DType> {
        if weight.trainable || weight.is_buffer() {
            return None;
        }
        let beside = self.params.iter().find(|(param, _)| {
            let apart = param.trainable && param.scope != weight.scope;
            apart && self.tape.is_inside(param.scope, weight.scope)
        });
        beside.map(|(param, _)| param.data.dtype())
    }

    pub(super) fn persists(&self, at: usize) -> bool {
        self.numel(at) <= self.limits.persistence
    }

    pub(super) fn numel(&self, at: usize) -> u64 {
        self.params.get(at).map_or(0, |(param, _)| stored(param))
    }

    pub(super) fn of(&self, module: Scope) -> Vec<usize> {
        self.members.get(&module).cloned().unwrap_or_default()
    }

    pub(super) fn is_missing(&self, at: usize) -> bool {
        matches!(self.params.get(at), Some((_, Status::NotAvailable)))
    }

    /// `_invalidate_trace`: modules come in another order than the one that was recorded.
    pub(super) fn invalidate(&mut self) {
        self.trace = Trace::Invalid;
        self.order = Order::default();
        self.queue.clear();
        self.fetched_for.fill(None);
        self.release_in_flight();
    }

    /// The end of a backward: everything gathered is released (`release_backward_leftovers`, `partition_all_parameters`).
    pub(crate) fn end(&mut self) {
        self.leave_module();
        self.leave_layer();
        self.give_back();
        self.active.fill(false);
        for at in 0..self.params.len() {
            if !self.persists(at) {
                self.partition(at);
            }
        }
        self.available = 0;
    }

    /// `reset_step`: a model begins its forward, and the pass before, which may have had a backward, is finished.
    pub(crate) fn reset(&mut self) {
        self.leave_module();
        self.give_back();
        self.release_in_flight();
        self.trace = match self.trace {
            Trace::Invalid => Trace::Recording,
            Trace::Recording | Trace::Complete => Trace::Complete,
        };
        self.queue.clear();
        for (step, module) in self.order.modules.iter().enumerate() {
            let members = self.members.get(module).map(Vec::as_slice);
            let steps = members.unwrap_or_default().iter().map(|at| (*at, step));
            self.queue.extend(steps);
        }
        self.fetched_for.fill(None);
        self.step = 0;
        self.available = 0;
    }

    /// Small parameters stay gathered from step to step (`persistent_parameters`).
    pub(crate) fn gather_persistent(&mut self) {
        for at in 0..self.params.len() {
            if self.persists(at) && self.is_missing(at) {
                self.gather(&[at]);
                self.wait(at);
            }
        }
        self.available = 0;
    }
}

/// The type that a parameter is stored in: bytes of packed weights two by two, for only floating types can be divided.
pub(super) fn storage(param: &Param) -> DType {
    match param.data.dtype() {
        DType::U8 => DType::BF16,
        dtype => dtype,
    }
}

/// Its elements in that type.
pub(super) fn stored(param: &Param) -> u64 {
    param.data.bytes().div_ceil(storage(param).bytes().max(1))
}
