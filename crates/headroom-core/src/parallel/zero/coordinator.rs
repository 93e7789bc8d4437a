//! Which of stage 3's parameters are gathered, and when they go again
//! (deepspeed/runtime/zero/partitioned_param_coordinator.py).

use headroom_base::units::RoundUp;
use std::collections::VecDeque;
use std::rc::Rc;

use super::order::Order;
use crate::tape::{Category, DType, Param, Scope, Stream, Tape, Tensor};
use headroom_base::order::Map;

/// What stage 3 does in Python around one pass of a module: its hooks, and those of the modules without weights beside it.
pub const MODULE_HOOKS: &str = "zero_hooks";

/// The limits of `zero_optimization`, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub prefetch: u64,
    pub live: u64,
    pub reuse: u64,
    /// Parameters no larger are never divided.
    pub persistence: u64,
    /// Where parameters are gathered: beside the computation, if communication overlaps with it (`overlap_comm`).
    pub stream: Stream,
    /// Shards are on the host, and sent to the device to be gathered.
    pub from_host: bool,
    /// What has been gathered once is kept divided over so many GPUs alone, from which it is gathered again
    /// (`zero_hpz_partition_size`); zero stands for none.
    pub secondary: u64,
}

/// `ZeroParamStatus`.
#[derive(Debug)]
enum Status {
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
enum Trace {
    Invalid,
    Recording,
    Complete,
}

/// `PartitionedParameterCoordinator`.
#[derive(Debug)]
pub(super) struct Coordinator {
    tape: Tape,
    limits: Limits,
    ranks: u64,
    /// The parameters, the module that each stands in, and whether it is there.
    params: Vec<(Rc<Param>, Status)>,
    /// This rank's part of each parameter within its group, where there is one (`ds_secondary_tensor`).
    secondary: Vec<Option<Tensor>>,
    /// The parameters of each module.
    members: Map<Scope, Vec<usize>>,
    trace: Trace,
    /// The modules in the order in which they are fetched.
    order: Order<Scope>,
    /// Parameters to come, with the step in which each is used.
    queue: VecDeque<(usize, usize)>,
    /// The step for which each parameter was fetched last.
    fetched_for: Vec<Option<usize>>,
    step: usize,
    available: u64,
    /// Parameters that were gathered for code outside of their module, until the model is through.
    held: Vec<usize>,
    /// The module under way.
    current: Option<(Scope, Pass)>,
    /// Whether the end of a module's backward is told: its last forward counted inputs that ask for a gradient (`ds_grads_remaining`).
    counted: Map<Scope, bool>,
    /// The layer whose backward runs, and whose forward may run again in it.
    layer: Option<Scope>,
    /// Frozen parameters that the layer's second forward has fetched: they stay to the end of its backward (`ds_recompute_parameters`).
    of_layer: Vec<usize>,
    /// Parameters of a module that is taken to be under way (`ds_active_sub_modules`): no other module's end lets them go.
    active: Vec<bool>,
}

impl Coordinator {
    pub fn new(tape: &Tape, limits: Limits, ranks: u64, params: Vec<Rc<Param>>) -> Self {
        let mut members: Map<Scope, Vec<usize>> = Map::new();
        for (at, param) in params.iter().enumerate() {
            members.or_default(param.scope).push(at);
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
            counted: Map::new(),
            layer: None,
            of_layer: Vec::new(),
        };
        tape.setting_up(|| (0..new.params.len()).for_each(|at| new.keep_secondary(at)));
        new
    }

    /// `_partition_param_sec`: a parameter that is about to be divided leaves this rank's part of its group's copy.
    fn keep_secondary(&mut self, at: usize) {
        let (tape, group) = (&self.tape, self.limits.secondary);
        let numel = self.numel(at).round_up(self.ranks.max(1));
        let Some(((param, _), kept)) = self.params.get(at).zip(self.secondary.get_mut(at)) else {
            return;
        };
        if group == 0 || kept.is_some() || self.limits.from_host {
            return;
        }
        let part = tape.empty("secondary", [numel / group], storage(param));
        part.set_category(Category::Parameters);
        *kept = Some(part);
    }

    /// `invalidate_secondary_tensor`: the copies of what has been stepped are stale.
    pub fn drop_secondary(&mut self) {
        for ((param, _), kept) in self.params.iter().zip(&mut self.secondary) {
            if param.trainable {
                kept.take();
            }
        }
    }

    /// `_partition`: a parameter that is whole is divided again.
    fn partition(&mut self, at: usize) {
        if matches!(self.params.get(at), Some((_, Status::Available { .. }))) {
            self.keep_secondary(at);
        }
        self.put(at, Status::NotAvailable);
    }

    /// A module's parameters are used, in forward or in backward: those of the one before have been.
    pub fn enter(&mut self, module: Scope, pass: Pass) {
        if self.current == Some((module, pass)) {
            return;
        }
        self.leave();
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

    /// The module under way is through. The end of its backward is not told where its last forward was without gradients.
    pub fn leave(&mut self) {
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
    pub fn leave_forward(&mut self, module: Scope) {
        if self.current == Some((module, Pass::Forward)) {
            self.leave();
        }
    }

    /// A layer runs forward, on inputs of which some may ask for a gradient.
    pub fn enter_layer(&mut self, layer: Scope, asks: bool) {
        self.counted.insert(layer, asks);
    }

    /// A layer's backward begins.
    pub fn enter_layer_backward(&mut self, layer: Scope) {
        self.leave();
        self.leave_layer();
        self.layer = Some(layer);
    }

    /// A layer's backward is through: what its second forward has fetched goes, if its end is told.
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
    pub fn freezes(&self, module: Scope) -> bool {
        self.of(module).iter().any(|at| !self.trains(*at))
    }

    fn trains(&self, at: usize) -> bool {
        self.params
            .get(at)
            .is_some_and(|(param, _)| param.trainable)
    }

    /// Gathers what a module outside of its own forward needs, where it is not there already, and holds it (an external parameter of
    /// the module that is under way).
    pub fn hold(&mut self, module: Scope) {
        for at in self.of(module) {
            if self.is_missing(at) {
                self.gather(&[at]);
                self.wait(at);
                self.held.push(at);
            }
        }
    }

    /// Lets go what is held.
    pub fn give_back(&mut self) {
        for at in std::mem::take(&mut self.held) {
            self.partition(at);
            self.available = self.available.saturating_sub(self.numel(at));
        }
    }

    /// Whether something of a module is held.
    pub fn holds(&self, module: Scope) -> bool {
        self.of(module).iter().any(|at| self.held.contains(at))
    }

    /// Whether the recorded pass goes on: with a backward after the forward that is through.
    pub fn goes_on(&self) -> bool {
        self.trace == Trace::Complete && self.step < self.order.modules.len()
    }

    /// Gathers each parameter by itself; the one before goes once the next is there.
    pub fn read_whole(&self) {
        let mut before = None;
        for (at, (param, _)) in self.params.iter().enumerate() {
            let numel = self.numel(at).round_up(self.ranks.max(1));
            let gather = || self.tape.empty("all_gather", [numel], storage(param));
            drop(before.replace(self.tape.on(self.limits.stream, gather)));
        }
        drop(before);
    }

    fn persists(&self, at: usize) -> bool {
        self.numel(at) <= self.limits.persistence
    }

    fn numel(&self, at: usize) -> u64 {
        self.params.get(at).map_or(0, |(param, _)| stored(param))
    }

    fn of(&self, module: Scope) -> Vec<usize> {
        self.members.get(&module).cloned().unwrap_or_default()
    }

    fn is_missing(&self, at: usize) -> bool {
        matches!(self.params.get(at), Some((_, Status::NotAvailable)))
    }

    /// `fetch_sub_module`: what the module needs, and ahead what comes after it.
    fn fetch(&mut self, module: Scope) {
        if self.trace == Trace::Complete && self.order.modules.get(self.step) != Some(&module) {
            self.invalidate();
        }
        if self.trace == Trace::Recording {
            let numels = self.of(module).into_iter().map(|at| self.numel(at));
            let elements = numels.fold(0, u64::saturating_add);
            self.order.push(module, elements);
        }
        let needed = self.of(module);
        self.gather(&needed);
        for &at in &needed {
            self.wait(at);
        }
        if self.trace == Trace::Complete {
            let fresh = needed
                .iter()
                .filter(|at| self.fetched_for.get(**at).copied().flatten() < Some(self.step))
                .count();
            for _ in 0..fresh {
                if let Some((at, step)) = self.queue.pop_front()
                    && let Some(place) = self.fetched_for.get_mut(at)
                {
                    *place = Some(step);
                }
            }
            self.prefetch();
        }
        self.step += 1;
    }

    fn prefetch(&mut self) {
        let room = self.limits.live.saturating_sub(self.available);
        let most = room.min(self.limits.prefetch);
        let mut ahead: Vec<usize> = Vec::new();
        let mut numel: u64 = 0;
        while numel < most {
            let Some((at, step)) = self.queue.pop_front() else {
                break;
            };
            if let Some(place) = self.fetched_for.get_mut(at) {
                *place = (*place).max(Some(step));
            }
            if self.is_missing(at) && !ahead.contains(&at) {
                ahead.push(at);
                numel = numel.saturating_add(self.numel(at));
            }
        }
        self.gather(&ahead);
    }

    /// `__all_gather_params_`: those with a copy in the group are gathered from there, the others from all ranks.
    fn gather(&mut self, wanted: &[usize]) {
        let missing = wanted.iter().copied().filter(|at| self.is_missing(*at));
        let near = |at: &usize| self.secondary.get(*at).is_some_and(Option::is_some);
        let (near, far) = missing.partition(near);
        self.gather_together(near);
        self.gather_together(far);
    }

    /// `all_gather_coalesced`: one parameter straight into its place, several into one buffer.
    fn gather_together(&mut self, missing: Vec<usize>) {
        let numels = missing.iter().map(|at| self.numel(*at));
        self.available = numels.fold(self.available, u64::saturating_add);
        let padded = |at: usize| self.numel(at).round_up(self.ranks.max(1));
        let sizes = missing.iter().map(|at| padded(*at));
        let whole = sizes.fold(0, u64::saturating_add);
        let dtype = missing
            .first()
            .and_then(|at| self.params.get(*at))
            .map_or(DType::F32, |(param, _)| storage(param));
        let buffer = || {
            self.tape.on(self.limits.stream, || {
                let buffer = self.tape.empty("all_gather", [whole], dtype);
                if self.limits.from_host {
                    let sizes = missing.iter().map(|at| padded(*at) / self.ranks.max(1));
                    let sent = sizes.map(|numel| self.tape.empty("to", [numel], dtype));
                    drop(sent.collect::<Vec<Tensor>>());
                }
                buffer
            })
        };
        match missing[..] {
            [] => {}
            [at] => {
                let buffer = buffer();
                buffer.set_category(Category::Parameters);
                self.put(at, Status::InflightAlone(buffer));
            }
            _ => {
                let buffer = Rc::new(buffer());
                for at in missing {
                    self.put(at, Status::Inflight(buffer.clone()));
                }
            }
        }
    }

    fn put(&mut self, at: usize, status: Status) {
        if let Some((_, place)) = self.params.get_mut(at) {
            *place = status;
        }
    }

    /// A buffer's parameters are copied out together; it goes once the last of them has been waited for.
    fn wait(&mut self, at: usize) {
        let Some((_, status)) = self.params.get_mut(at) else {
            return;
        };
        let buffer = match std::mem::replace(status, Status::NotAvailable) {
            Status::NotAvailable => return,
            Status::InflightAlone(memory)
            | Status::Available {
                _memory: memory, ..
            } => {
                *status = Status::Available {
                    _memory: memory,
                    buffer: None,
                };
                return;
            }
            Status::Inflight(buffer) => {
                *status = Status::Inflight(buffer.clone());
                buffer
            }
        };
        let (tape, stream) = (self.tape.clone(), self.limits.stream);
        for (param, status) in &mut self.params {
            let is_in = |other: &Rc<Tensor>| Rc::ptr_eq(other, &buffer);
            if !matches!(status, Status::Inflight(other) if is_in(other)) {
                continue;
            }
            let (numel, dtype) = (stored(param), buffer.dtype());
            let whole = tape.on(stream, || tape.empty("cat", [numel], dtype));
            whole.set_category(Category::Parameters);
            *status = Status::Available {
                _memory: whole,
                buffer: Some(buffer.clone()),
            };
        }
        drop(buffer);
        if let Some((_, Status::Available { buffer, .. })) = self.params.get_mut(at) {
            buffer.take();
        }
    }

    /// `release_sub_module`: parameters go that are not used again soon.
    fn release(&mut self, module: Scope) {
        let mut leaving = self.of(module);
        if self.trace == Trace::Complete {
            leaving.retain(|at| !self.persists(*at));
            leaving.retain(|at| {
                let fetched = self.fetched_for.get(*at).copied().flatten();
                fetched <= Some(self.step)
            });
            if self
                .order
                .comes_within(self.limits.reuse, module, self.step)
            {
                leaving.clear();
            }
        }
        for at in leaving {
            self.release_param(at);
        }
    }

    /// `__release_param`.
    fn release_param(&mut self, at: usize) {
        let active = self.active.get(at).copied().unwrap_or_default();
        if !active && matches!(self.params.get(at), Some((_, Status::Available { .. }))) {
            self.partition(at);
            self.available = self.available.saturating_sub(self.numel(at));
        }
    }

    /// `_clean_inflight_param_registry`: what was gathered ahead and not used goes.
    fn release_in_flight(&mut self) {
        for at in 0..self.params.len() {
            let status = self.params.get(at).map(|(_, status)| status);
            if let Some(Status::Inflight(_) | Status::InflightAlone(_)) = status {
                self.put(at, Status::NotAvailable);
                self.available = self.available.saturating_sub(self.numel(at));
            }
        }
    }

    /// `_invalidate_trace`: modules come in another order than the one that was recorded.
    fn invalidate(&mut self) {
        self.trace = Trace::Invalid;
        self.order = Order::default();
        self.queue.clear();
        self.fetched_for.fill(None);
        self.release_in_flight();
    }

    /// The end of a backward: whatever is there goes (`release_backward_leftovers`, `partition_all_parameters`).
    pub fn end(&mut self) {
        self.leave();
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

    /// `reset_step`: a model begins its forward, and the pass before, which may have had a backward, is through.
    pub fn reset(&mut self) {
        self.leave();
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

    /// Parameters that are never divided stay whole from one step to the next (`persistent_parameters`).
    pub fn gather_persistent(&mut self) {
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
