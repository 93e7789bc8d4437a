//! The tape: symbolic tensors whose handles live and die like Python references, and an autograd engine
//! that saves, frees and accumulates as PyTorch's does. It knows operations, never models.

mod autocast;
mod autograd;
mod backward;
mod budget;
mod category;
mod checkpoint;
mod compile;
mod conversion;
pub mod fold;
mod kernels;
mod layout;
mod mode;
pub mod ops;
mod param;
mod phase;
mod relay;
mod repeat;
mod spare;
mod split_backward;
mod sum;
mod tensor;
mod tensor_info;
mod torch;
mod trace;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use crate::dtype::DType;
pub use autograd::{GradientEdge, GraphNode, Needs, Saved};
pub use backward::{Backward, Grads, borrowing, consuming, grads};
pub use category::Category;
pub use checkpoint::SavePolicy;
pub use fold::Folding;
pub use layout::{Dims, Layout, broadcast};
pub use mode::{Mode, Stream};
pub use param::{ConstructionPoint, Param, PostAccumulateGradHook};
pub use phase::Phase;
pub use relay::Relay;
pub use repeat::Copied;
pub use split_backward::{KeptGraph, WeightGradients};
pub use sum::Sum;
pub(in crate::tape) use tensor::Kept;
pub use tensor::Tensor;
pub use tensor_info::TensorInfo;
pub use torch::{AdamStep, Torch};
pub use trace::{Event, Group, Kernel, PhaseStart, Scope, Source, Storage, Trace, rounded};

use autograd::Node;
use checkpoint::SavedTensorHook;
use trace::ScopeEntry;

/// What the tape and the step need to know of the GPU and of PyTorch to choose the same kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Compute capability, such as `(8, 0)`.
    pub capability: (u8, u8),
    pub multiprocessors: u64,
    /// Scratch memory a cuDNN convolution plan claims.
    pub cudnn_workspace: u64,
    /// Generated kernels are timed when they first run.
    pub tunes: bool,
    pub torch: Torch,
}

impl Machine {
    /// Bytes of level-2 cache, from NVIDIA's white papers of the largest chip of each generation.
    pub const fn level2_cache(self) -> u64 {
        match self.capability {
            (8, 0) => 40 << 20,
            (8, 9) => 72 << 20,
            (9, _) => 50 << 20,
            (10, _) => 126 << 20,
            (12, _) => 96 << 20,
            _ => 6 << 20,
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            capability: (8, 0),
            multiprocessors: 108,
            cudnn_workspace: 0,
            tunes: false,
            torch: Torch::default(),
        }
    }
}

/// A handle on one recording; clones record on the same tape.
#[derive(Clone)]
pub struct Tape(Rc<Core>);

pub(in crate::tape) struct Core {
    machine: Machine,
    trace: RefCell<Trace>,
    mode: Cell<Mode>,
    phase: Cell<Phase>,
    step: Cell<u32>,
    /// A recomputation has saved everything it needs. PyTorch leaves the segment there by an exception; here the rest of it
    /// runs without allocating.
    stopped: Cell<bool>,
    /// The code that runs belongs to another rank's stage: it only computes shapes.
    left_out: Cell<bool>,
    /// Nothing is recorded any more.
    closed: Cell<bool>,
    sequence: Cell<u32>,
    /// The group being recorded.
    open: Cell<fold::Open>,
    /// The engine never accumulates gradients in place.
    accumulates_out_of_place: Cell<bool>,
    cast_cache: RefCell<Vec<(Rc<Node>, Tensor)>>,
    /// The workspaces cuBLAS keeps, where its version does: the loop's thread has one, backward's another.
    cublas: Cell<[Option<u32>; 2]>,
    hooks: RefCell<Vec<SavedTensorHook>>,
    /// What nodes hold as plain attributes instead of saved tensors: alive as long as the graph.
    contexts: RefCell<Vec<Tensor>>,
    params: RefCell<Vec<Rc<Param>>>,
    /// Parameters injected into the constructed model, by their storage, and their initial dtypes.
    injected: RefCell<Vec<(u32, DType)>>,
    /// Shapes and dtypes are recorded too, if requested; from this entry on the saving operation is not known yet.
    records_tensors: Cell<Option<usize>>,
    /// Kernels are not recorded.
    kernels_left_out: Cell<bool>,
    /// The operation whose kernel was launched last.
    last_op: Cell<&'static str>,
    launched: trace::Launched,
    sources: trace::RecentSources,
    relays: relay::Relays,
    budget: budget::Budget,
    split: split_backward::Split,
    /// The compiled region that runs.
    region: RefCell<Option<compile::Region>>,
    /// What crossed breaks of compiled graphs.
    crossed: RefCell<Vec<Tensor>>,
    /// What values without memory are computed from.
    put_off_values: RefCell<compile::PutOff>,
    cuts: RefCell<compile::Cuts>,
    /// What the generated kernel of backward that runs reads.
    fused: RefCell<Option<Vec<Rc<compile::Held>>>>,
    /// Storages that a compiled graph shares with what is around it: nothing is written over them.
    leaving: RefCell<std::collections::BTreeSet<u32>>,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} events)", self.0.trace.borrow().events.len())
    }
}

impl Tape {
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
            mode: Cell::default(),
            phase: Cell::default(),
            step: Cell::new(0),
            stopped: Cell::new(false),
            left_out: Cell::new(false),
            closed: Cell::new(false),
            sequence: Cell::new(0),
            open: Cell::default(),
            accumulates_out_of_place: Cell::new(false),
            cast_cache: RefCell::default(),
            cublas: Cell::default(),
            hooks: RefCell::default(),
            contexts: RefCell::default(),
            params: RefCell::new(Vec::with_capacity(SETUP)),
            injected: RefCell::default(),
            records_tensors: Cell::new(None),
            kernels_left_out: Cell::new(false),
            last_op: Cell::new(""),
            launched: trace::Launched::default(),
            sources: trace::RecentSources::default(),
            relays: relay::Relays::default(),
            budget: budget::Budget::default(),
            split: split_backward::Split::default(),
            region: RefCell::default(),
            crossed: RefCell::default(),
            put_off_values: RefCell::default(),
            cuts: RefCell::default(),
            fused: RefCell::default(),
            leaving: RefCell::default(),
        }))
    }

    pub fn machine(&self) -> Machine {
        self.0.machine
    }

    /// Stops recording kernels.
    pub fn leave_kernels_out(&self) {
        self.0.kernels_left_out.set(true);
    }

    pub fn leaves_kernels_out(&self) -> bool {
        self.0.kernels_left_out.get()
    }

    /// Marks where a phase of a step begins.
    pub fn mark(&self, step: u32, phase: Phase) {
        self.0.phase.set(phase);
        self.0.step.set(step);
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
    pub fn during<T>(&self, phase: Phase, body: impl FnOnce() -> T) -> T {
        if self.declaring() {
            return body();
        }
        let (step, outer) = (self.0.step.get(), self.0.phase.get());
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

    pub fn empty_as(&self, op: &'static str, layout: Layout, dtype: DType) -> Tensor {
        self.0.empty(op, layout, dtype)
    }

    /// Scratch memory that a kernel allocates and frees.
    pub fn workspace(&self, op: &'static str, bytes: u64) {
        if bytes > 0 {
            let storage = self.0.allocate(op, bytes, Category::Workspace);
            self.0.release(storage);
        }
    }

    pub fn kernel(&self, op: &'static str, dtype: DType, flops: f64, bytes_moved: f64) {
        self.0.kernel(op, dtype, [flops, bytes_moved], 1);
    }

    /// `count` launches with this work in total.
    pub fn launches(&self, op: &'static str, dtype: DType, work: [f64; 2], count: u32) {
        let count = count.max(1);
        let each = work.map(|of_all| of_all / f64::from(count));
        self.0.kernel(op, dtype, each, count);
    }

    /// Something that takes the program time and the card none.
    pub fn host_call(&self, op: &'static str) {
        if !self.0.is_silent() {
            self.0.record_launches(op, DType::U8, [0.0; 2], 1);
        }
    }

    /// Makes the engine accumulate gradients out of place, as it does for tensor subclasses such as `DTensor` and
    /// `FakeTensor` (`can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp).
    pub fn accumulate_out_of_place(&self) {
        self.0.accumulates_out_of_place.set(true);
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

    pub fn path(&self, scope: Scope) -> String {
        self.0.trace.borrow().path(scope)
    }

    /// Sorts the parameters into the order in which the model lists them, where they were not created in that order.
    pub fn arrange_params<K: Ord>(&self, key: impl Fn(&str) -> K) {
        let mut params = self.0.params.borrow_mut();
        params.sort_by_cached_key(|param| key(&self.path(param.scope)));
    }

    /// Holds a tensor as long as the graph of the loss lives.
    pub fn hold_with_graph(&self, tensor: &Tensor) {
        if self.0.mode.get().declaring || self.0.left_out.get() {
            return;
        }
        self.0.contexts.borrow_mut().push(tensor.clone());
    }

    /// What is held by the graph built since the last call.
    pub fn take_graph(&self) -> Vec<Tensor> {
        self.0.contexts.take()
    }

    /// How many declared parameters and buffers no model has taken yet.
    pub fn declared(&self) -> usize {
        self.0.params.borrow().len()
    }

    /// Ends the recording and returns it. What is still alive is not freed in it.
    pub fn finish(self) -> Trace {
        self.0.closed.set(true);
        self.0.cast_cache.take();
        self.0.contexts.take();
        self.0.crossed.take();
        let trace = self.0.trace.take();
        Trace {
            spent: self.spent(),
            ..trace
        }
    }
}

impl Core {
    fn kernel(&self, op: &'static str, dtype: DType, work: [f64; 2], count: u32) {
        if self.is_silent() {
            return;
        }
        self.last_op.set(op);
        self.works(work[0] * f64::from(count));
        self.record_launches(op, dtype, work, count);
    }

    /// Nothing that happens now is recorded.
    fn is_silent(&self) -> bool {
        self.stopped.get() || self.left_out.get() || self.mode.get().declaring
    }

    fn record_launches(&self, op: &'static str, dtype: DType, work: [f64; 2], count: u32) {
        if self.kernels_left_out.get() {
            return;
        }
        let kernel = Kernel {
            op,
            flops: work[0],
            bytes_moved: work[1],
            dtype,
            phase: self.phase.get(),
            times: self.open.get().times().saturating_mul(count),
        };
        self.trace.borrow_mut().launch(kernel, &self.launched);
    }

    fn natural_category(&self) -> Category {
        match self.phase.get() {
            Phase::Setup | Phase::Resume => Category::Inputs,
            Phase::Forward | Phase::Generation | Phase::Reference | Phase::Evaluation => {
                Category::Activations
            }
            Phase::Backward => Category::BackwardTemporaries,
            Phase::Optimizer => Category::OptimizerTemporaries,
        }
    }
}
