//! Recording: phases, modules, memory and kernels.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::budget::{Budget, MOST_TENSORS};
use super::compile::Launch;
use super::core::{Ambient, Autograd, Compiler, Construction, Core, Recorder, Relays, Split};
use super::trace::{PhaseStart, ScopeEntry};
use super::{Category, DType, Dims, Kernel, Layout, Machine, Phase, Scope, Tape, Tensor, Trace};

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} events)", self.0.trace.borrow().events.len())
    }
}

impl Tape {
    /// An empty recording for this GPU and version of PyTorch.
    pub fn new(machine: Machine) -> Self {
        // Room for a folded run, so that lists are not moved as they grow.
        const EVENTS: usize = 4096;
        const SETUP: usize = 128;
        let mut scopes = Vec::with_capacity(64);
        scopes.push(ScopeEntry {
            parent: Scope::default(),
            name: "",
            index: None,
            times: 1,
            last_child: 0,
            sibling: 0,
        });
        let trace = Trace {
            scopes,
            setup: Vec::with_capacity(SETUP),
            events: Vec::with_capacity(EVENTS),
            ..Trace::default()
        };
        Self(Rc::new(Core {
            machine,
            trace: RefCell::new(trace),
            recorder: Recorder::default(),
            ambient: Ambient::default(),
            autograd: Autograd::default(),
            construction: Construction {
                params: RefCell::new(Vec::with_capacity(SETUP)),
                ..Construction::default()
            },
            compiler: Compiler::default(),
            split: Split::default(),
            open: Cell::default(),
            relays: Relays::default(),
            cublas: Cell::default(),
            budget: Budget::default(),
        }))
    }

    pub(crate) fn machine(&self) -> Machine {
        self.0.machine
    }

    /// Stops recording kernels.
    pub fn skip_kernels(&self) {
        self.0.recorder.skips_kernels.set(true);
    }

    pub(crate) fn skips_kernels(&self) -> bool {
        self.0.recorder.skips_kernels.get()
    }

    /// Marks where a phase of a step begins.
    pub fn mark(&self, step: u32, phase: Phase) {
        self.0.ambient.phase.set(phase);
        self.0.ambient.step.set(step);
        let mut trace = self.0.trace.borrow_mut();
        let (at, kernels) = (trace.events.len(), trace.kernels.len());
        trace.phase_starts.push(PhaseStart {
            at,
            kernels,
            step,
            phase,
        });
    }

    /// Runs `body` as a phase inside the current one, which continues afterwards.
    pub fn with_phase<T>(&self, phase: Phase, body: impl FnOnce() -> T) -> T {
        if self.declaring() {
            return body();
        }
        let (step, outer) = (self.0.ambient.step.get(), self.0.ambient.phase.get());
        self.mark(step, phase);
        let result = body();
        self.mark(step, outer);
        result
    }

    /// How many events there are so far.
    pub fn position(&self) -> usize {
        self.0.trace.borrow().events.len()
    }

    /// A new tensor in memory of its own.
    pub fn empty(&self, op: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        self.empty_as(op, Layout::contiguous(shape), dtype)
    }

    pub(crate) fn empty_as(&self, op: &'static str, layout: Layout, dtype: DType) -> Tensor {
        self.0.empty(op, layout, dtype)
    }

    /// Scratch memory that a kernel allocates and frees.
    pub fn workspace(&self, op: &'static str, bytes: u64) {
        if bytes > 0 {
            let storage = self.0.allocate(op, bytes, Category::Workspace);
            self.0.release(storage);
        }
    }

    pub(crate) fn kernel(&self, op: &'static str, dtype: DType, flops: f64, bytes_moved: f64) {
        self.0.kernel(op, dtype, [flops, bytes_moved], 1);
    }

    /// `count` launches with this work in total.
    pub fn launches(&self, op: &'static str, dtype: DType, work: [f64; 2], count: u32) {
        let count = count.max(1);
        let each = work.map(|of_all| of_all / f64::from(count));
        self.0.kernel(op, dtype, each, count);
    }

    /// CPU time with no kernel (Python overhead).
    pub fn host_call(&self, op: &'static str) {
        if !self.0.is_silent() {
            self.0.record_launches(op, DType::U8, [0.0; 2], 1);
        }
    }

    /// Makes the engine accumulate gradients out of place, as it does for tensor subclasses such as `DTensor` and
    /// `FakeTensor` (`can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp).
    pub fn accumulate_out_of_place(&self) {
        self.0.autograd.accumulates_out_of_place.set(true);
    }

    /// The scope `name` (or `name.index`) inside `parent`.
    pub fn scope_in(&self, parent: Scope, name: &'static str, index: Option<u32>) -> Scope {
        let mut trace = self.0.trace.borrow_mut();
        let scopes = &mut trace.scopes;
        let sibling = scopes
            .get(parent.index())
            .map_or(0, |entry| entry.last_child);
        let mut found = sibling;
        while let Some(entry) = scopes.get(found as usize).filter(|_| found != 0) {
            if entry.index == index && entry.name == name {
                return Scope(found);
            }
            found = entry.sibling;
        }
        let new = scopes.len() as u32;
        scopes.push(ScopeEntry {
            parent,
            name,
            index,
            times: self.0.open.get().times_of(parent),
            last_child: 0,
            sibling,
        });
        if let Some(entry) = scopes.get_mut(parent.index()) {
            entry.last_child = new;
        }
        Scope(new)
    }

    /// The scope of a module inside `parent` whose name comes from outside the program.
    pub fn named_scope_in(&self, parent: Scope, name: &str) -> Scope {
        let index = {
            let names = &mut self.0.trace.borrow_mut().names;
            let known = names.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                names.push(name.to_string());
                names.len() - 1
            })
        };
        self.scope_in(parent, "", Some(index as u32))
    }

    /// Whether a module is one of these or inside one.
    pub fn is_inside_any(&self, scope: Scope, outer: &[Scope]) -> bool {
        outer.iter().any(|outer| self.is_inside(scope, *outer))
    }

    /// Whether a module is `outer` or inside it.
    pub fn is_inside(&self, scope: Scope, outer: Scope) -> bool {
        let trace = self.0.trace.borrow();
        let mut at = scope;
        while at != outer {
            match trace.scopes.get(at.index()).filter(|_| at.index() != 0) {
                Some(entry) => at = entry.parent,
                None => return false,
            }
        }
        true
    }

    pub(crate) fn path(&self, scope: Scope) -> String {
        self.0.trace.borrow().path(scope)
    }

    /// Sorts the parameters into the order in which the model lists them, where they were not created in that order.
    pub fn arrange_params<K: Ord>(&self, key: impl Fn(&str) -> K) {
        let mut params = self.0.construction.params.borrow_mut();
        params.sort_by_cached_key(|param| key(&self.path(param.scope)));
    }

    /// Holds a tensor as long as the graph of the loss lives.
    pub fn keep_with_graph(&self, tensor: &Tensor) {
        if self.0.ambient.mode.get().declaring || self.0.ambient.shapes_only.get() {
            return;
        }
        self.0.autograd.contexts.borrow_mut().push(tensor.clone());
    }

    /// What is held by the graph built since the last call.
    pub fn take_graph(&self) -> Vec<Tensor> {
        self.0.autograd.contexts.take()
    }

    /// How many declared parameters and buffers no model has taken yet.
    pub fn declared(&self) -> usize {
        self.0.construction.params.borrow().len()
    }

    /// Ends the recording and returns it. What is still alive is not freed in it.
    pub fn finish(self) -> Trace {
        self.0.recorder.closed.set(true);
        self.0.autograd.cast_cache.take();
        self.0.autograd.contexts.take();
        self.0.compiler.crossed.take();
        let trace = self.0.trace.take();
        Trace {
            over_budget: self.is_over_budget(),
            ..trace
        }
    }

    /// Whether the run exceeds its budget. Nothing more is recorded from there on, so it ends soon.
    pub fn is_over_budget(&self) -> bool {
        self.0.budget.is_spent()
    }

    /// The tensors that the run has made.
    pub fn tensors_created(&self) -> u64 {
        self.0.budget.made.get().into()
    }

    /// How many more it may make.
    pub fn tensors_left(&self) -> u64 {
        u64::from(MOST_TENSORS).saturating_sub(self.tensors_created())
    }

    /// The count, if the run may make this many more tensors; otherwise a few, and it ends soon: a refusal costs no time.
    pub fn affordable(&self, count: u64) -> u64 {
        if count <= self.tensors_left() {
            return count;
        }
        self.spend(count);
        1
    }

    /// Counts work that makes no tensors, as if it made this many.
    pub fn spend(&self, tensors: u64) {
        let budget = &self.0.budget;
        let made = self.tensors_created().saturating_add(tensors);
        budget.made.set(u32::try_from(made).unwrap_or(u32::MAX));
        let spent = made > u64::from(MOST_TENSORS);
        budget.spent.set(budget.is_spent() || spent);
    }

    /// Exceeds the budget before the run if this many passes over what was declared would.
    pub fn check_passes(&self, passes: u64) {
        if self.tensors_created().saturating_mul(passes) > u64::from(MOST_TENSORS) {
            self.0.budget.spent.set(true);
        }
    }
}

impl Core {
    pub(in crate::tape) fn kernel(
        &self,
        op: &'static str,
        dtype: DType,
        work: [f64; 2],
        count: u32,
    ) {
        if self.is_silent() {
            return;
        }
        self.recorder.last_op.set(op);
        self.add_flops(work[0] * f64::from(count));
        self.record_launches(op, dtype, work, count);
    }

    /// Nothing that happens now is recorded.
    pub(in crate::tape) fn is_silent(&self) -> bool {
        self.ambient.stopped.get()
            || self.ambient.shapes_only.get()
            || self.ambient.mode.get().declaring
    }

    pub(in crate::tape) fn record_launches(
        &self,
        op: &'static str,
        dtype: DType,
        work: [f64; 2],
        count: u32,
    ) {
        if self.recorder.skips_kernels.get() || self.is_generated() {
            return;
        }
        let launch = Launch {
            op,
            dtype,
            work,
            count,
        };
        self.leave_generated(launch);
        self.record_kernel(launch);
    }

    pub(in crate::tape) fn record_kernel(&self, launch: Launch) {
        let Launch {
            op,
            dtype,
            work: [flops, bytes_moved],
            count,
        } = launch;
        let kernel = Kernel {
            op,
            flops,
            bytes_moved,
            dtype,
            phase: self.ambient.phase.get(),
            times: self.open.get().times().saturating_mul(count),
        };
        self.trace
            .borrow_mut()
            .launch(kernel, &self.recorder.launched);
    }

    pub(in crate::tape) fn natural_category(&self) -> Category {
        match self.ambient.phase.get() {
            Phase::Setup | Phase::Resume => Category::Inputs,
            Phase::Forward | Phase::Generation | Phase::Reference | Phase::Evaluation => {
                Category::Activations
            }
            Phase::Backward => Category::BackwardTemporaries,
            Phase::Optimizer => Category::OptimizerTemporaries,
        }
    }
}
