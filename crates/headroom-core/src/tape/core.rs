//! The types that refer to each other, as PyTorch's do: tensors hold the nodes of their graph, nodes what they saved and where
//! gradients go, and the tape what lives between operations. Their methods are in the other files.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};

use smallvec::SmallVec;

use super::budget::Budget;
use super::compile::{Compiled, Cuts, Graph, Launch, Made, Plan};
use super::layout::Shared;
use super::row::{Fold, Open};
use super::trace::{Launched, RecentSources};
use super::{DType, Machine, Mode, Phase, Scope, Trace};

/// A handle on one recording; clones record on the same tape.
#[derive(Clone)]
pub struct Tape(pub(super) Rc<Core>);

pub(in crate::tape) struct Core {
    pub machine: Machine,
    pub trace: RefCell<Trace>,
    pub recorder: Recorder,
    pub ambient: Ambient,
    pub autograd: Autograd,
    pub construction: Construction,
    pub compiler: Compiler,
    pub split: Split,
    /// The group being recorded.
    pub open: Cell<Open>,
    pub relays: Relays,
    /// The workspaces cuBLAS keeps, where its version does: the loop's thread has one, backward's another.
    pub cublas: Cell<[Option<u32>; 2]>,
    pub budget: Budget,
}

/// What is recorded, and the last entries of it.
#[derive(Default)]
pub(in crate::tape) struct Recorder {
    /// Nothing is recorded any more.
    pub closed: Cell<bool>,
    pub skips_kernels: Cell<bool>,
    /// Shapes and dtypes are recorded too, if requested; from this entry on the saving operation is not known yet.
    pub records_tensors: Cell<Option<usize>>,
    /// The operation whose kernel was launched last.
    pub last_op: Cell<&'static str>,
    pub launched: Launched,
    pub sources: RecentSources,
}

/// The state that applies to the operation that runs.
#[derive(Default)]
pub(in crate::tape) struct Ambient {
    pub mode: Cell<Mode>,
    pub phase: Cell<Phase>,
    pub step: Cell<u32>,
    /// A recomputation has saved everything it needs. PyTorch leaves the segment there by an exception; here the rest of it
    /// runs without allocating.
    pub stopped: Cell<bool>,
    /// Code of another rank's pipeline stage: only shapes are computed.
    pub shapes_only: Cell<bool>,
}

/// What autograd and autocast keep between operations.
#[derive(Default)]
pub(in crate::tape) struct Autograd {
    /// The sequence number of the next node.
    pub sequence: Cell<u32>,
    /// The same of nodes that a backward pass makes.
    pub inner_sequence: Cell<u32>,
    /// The sequence number of the node that runs backward.
    pub running: Cell<u32>,
    /// The engine never accumulates gradients in place.
    pub accumulates_out_of_place: Cell<bool>,
    pub hooks: RefCell<Vec<Rc<dyn SavedTensorHook>>>,
    /// Plain attributes of nodes (`ctx.x = y`), which are no saved tensors: alive as long as the graph.
    pub contexts: RefCell<Vec<Tensor>>,
    pub cast_cache: RefCell<Vec<(Rc<Node>, Tensor)>>,
}

/// What constructors have made that no model has taken yet.
#[derive(Default)]
pub(in crate::tape) struct Construction {
    pub params: RefCell<Vec<Rc<Param>>>,
    /// Parameters injected into the constructed model, by their storage, and their initial dtypes.
    pub injected: RefCell<Vec<(u32, DType)>>,
}

/// The state of `torch.compile`.
#[derive(Default)]
pub(in crate::tape) struct Compiler {
    /// A region was compiled: until then the rest is empty.
    pub is_used: Cell<bool>,
    /// The compiled region that runs.
    pub region: RefCell<Option<Region>>,
    /// Tensors live across graph breaks.
    pub crossed: RefCell<Vec<Tensor>>,
    /// Inputs of fused values that have no memory, by their storages.
    pub deferred_values: RefCell<BTreeMap<u32, Vec<Rc<StorageRef>>>>,
    pub cuts: RefCell<Cuts>,
    /// What the generated kernel of backward that runs reads.
    pub fused: RefCell<Option<Vec<Rc<StorageRef>>>>,
    /// Storages that generated kernels read or wrote since the last kernel of a library.
    pub touched: RefCell<BTreeSet<u32>>,
    /// Storages shared between a compiled graph and its surroundings: never overwritten.
    pub escaping: RefCell<BTreeSet<u32>>,
}

/// A handle on a tensor; cloning it is taking one more Python reference, dropping it is `del`.
#[derive(Clone)]
pub struct Tensor(pub(super) Rc<Slot>);

/// The memory of a tensor; empty only once its last handle is dropped.
pub(super) type Slot = Option<Inner>;

/// Small, as there are hundreds: layouts are shared, and a storage counts its holders.
pub(super) struct Inner {
    pub core: Rc<Core>,
    pub layout: Rc<Shared>,
    pub edge: Option<Edge>,
    /// Its storage; `None` if it has no memory.
    pub storage: Option<u32>,
    pub dtype: DType,
    /// A view of another tensor: never cached by autocast.
    pub view: bool,
}

/// What is saved of a tensor for backward: storage and layout, without history. Smaller than a tensor, because during
/// forward most live tensors are saved ones.
pub(in crate::tape) struct SavedVariable {
    pub core: Rc<Core>,
    pub layout: Rc<Shared>,
    pub storage: Option<u32>,
    pub dtype: DType,
}

/// Where a tensor's gradient goes.
#[derive(Clone)]
pub(in crate::tape) struct Edge {
    pub node: Rc<Node>,
    pub output: u32,
}

pub(in crate::tape) struct Node {
    pub sequence: u32,
    pub scope: Scope,
    pub fold: Option<Fold>,
    pub waiting: Cell<u32>,
    pub visited: Cell<bool>,
    /// Its incoming gradients are of a tensor subclass that the engine never accumulates in place.
    pub out_of_place: Cell<bool>,
    pub compiled: Compiled,
    pub work: Cell<Work>,
    pub edges: RefCell<Edges>,
    /// Gradients of its outputs so far; nearly every node has one output.
    pub buffer: RefCell<SmallVec<[Option<Tensor>; 1]>>,
}

/// What a node does with its incoming gradient.
#[derive(Default)]
pub(in crate::tape) enum Work {
    /// It has run already.
    #[default]
    Done,
    Backward(Backward),
    /// `AccumulateGrad`.
    Accumulate(Rc<Param>),
}

/// The edges of an operation; kept small, as every operation has a list of them.
pub(in crate::tape) type Edges = SmallVec<[Option<Edge>; 3]>;

/// Gradients of a node's outputs or of its inputs; `None` where there is none.
pub(crate) type Grads = SmallVec<[Option<Tensor>; 4]>;

/// A node's backward: from gradients of its outputs to gradients of its inputs. It runs once; its captures are freed when
/// it returns.
pub(crate) type Backward = Box<dyn FnOnce(Grads) -> Grads>;

/// A function that runs once a parameter's gradient has been accumulated (`register_post_accumulate_grad_hook`).
pub(crate) type PostAccumulateGradHook = dyn Fn(&Rc<Param>);

pub struct Param {
    /// The weight itself, without history.
    pub data: Tensor,
    pub grad: RefCell<Option<Tensor>>,
    pub scope: Scope,
    pub name: &'static str,
    pub trainable: bool,
    /// How many parameters of the model this tensor holds (differs from its elements where packed).
    pub count: u64,
    /// The row of equal layers it belongs to: it represents one parameter in each.
    pub fold: Option<Fold>,
    pub post_accumulate_grad: RefCell<Option<Rc<PostAccumulateGradHook>>>,
    /// What forward sees in its place, where a wrapper has copied it (`replicate` of torch/nn/parallel).
    pub replica: RefCell<Option<Tensor>>,
    /// The dtype in which forward sees it, if a wrapper casts it.
    pub(super) cast: Cell<Option<DType>>,
    /// Its states of eight bits are kept in fp32 (`GlobalOptimManager.register_module_override` of bitsandbytes).
    pub fp32_states: Cell<bool>,
    pub(super) node: RefCell<Option<Weak<Node>>>,
    pub(super) this: Weak<Param>,
}

/// A tensor saved for backward.
#[allow(missing_debug_implementations)]
pub struct Saved(pub(super) Holder);

/// Where a saved tensor is.
pub(in crate::tape) enum Holder {
    Saved(SavedVariable),
    /// What a hook made of it.
    Packed(Rc<dyn Unpack>),
}

/// The packed form of a saved tensor (the result of `pack_hook`).
pub(in crate::tape) trait Unpack {
    fn unpack(&self) -> Tensor;
}

/// What happens to tensors that are saved while it is active (`torch.autograd.graph.saved_tensors_hooks`).
pub(in crate::tape) trait SavedTensorHook {
    fn pack(&self, tensor: &Tensor) -> Holder;
    /// Whether what is saved is computed again in backward.
    fn recomputes(&self) -> bool {
        false
    }
    /// What a checkpoint's policy does with the results of an operation.
    fn select(&self, _op: SelectableOp) -> Selection {
        Selection::Run
    }
    fn store(&self, _results: &[Tensor]) {}
    /// The next results that were stored, at most this many.
    fn load(&self, _count: usize) -> Vec<Tensor> {
        Vec::new()
    }
}

/// What a checkpointed segment does with an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tape) enum Selection {
    Run,
    RunAndStore,
    Load,
}

/// An operation that a [`SavePolicy`] may name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tape) enum SelectableOp {
    Attention,
    Product,
    /// A collective, which would have to be sent again.
    ReduceScatter,
}

/// State of a backward split into input and weight gradients (`torch/distributed/pipelining/_backward.py`).
#[derive(Default)]
pub(in crate::tape) struct Split {
    /// What nodes have saved since forward began; `None` where backward is not in two parts.
    pub saved: RefCell<Option<Vec<Holder>>>,
    /// The number of them saved before the last node with a weight, from which they are reachable.
    pub reached: Cell<usize>,
    /// Gradients of weights are deferred.
    pub defers: Cell<bool>,
    /// What the node that runs has deferred.
    pub deferred: RefCell<Option<DeferredWeightGrad>>,
    pub weights: RefCell<Vec<WeightGradient>>,
    /// While gradients of weights are computed: those of the node before that have been added to sums.
    pub added: RefCell<Option<Vec<Tensor>>>,
    /// Backwards that have begun.
    pub backwards: Cell<u64>,
}

pub(in crate::tape) struct WeightGradient {
    pub scope: Scope,
    /// Where they go, by their place among the node's inputs.
    pub edges: Vec<(usize, Edge)>,
    pub compute: DeferredWeightGrad,
}

/// The gradients of a node's weights, yet to be computed: what it takes for them it holds.
pub(in crate::tape) type DeferredWeightGrad = Box<dyn FnOnce() -> Grads>;

/// The relays of a recording, and their contents at the start of the current group.
#[derive(Default)]
pub(in crate::tape) struct Relays {
    pub all: RefCell<Vec<Weak<Queue>>>,
    pub at_open: RefCell<Vec<Vec<u32>>>,
}

/// The contents of a relay.
pub(in crate::tape) type Queue = RefCell<VecDeque<Tensor>>;

/// The region that runs.
#[derive(Default)]
pub(in crate::tape) struct Region {
    /// How many storages it has made so far.
    pub made: usize,
    /// How many tensors it has saved.
    pub saved: usize,
    /// Storages made since the last operation was complete.
    pub open: Vec<Made>,
    /// What the operation under way reads.
    pub reads: Vec<u32>,
    /// A library's kernel runs the operation under way.
    pub external: bool,
    /// The next storage is of a generated kernel.
    pub generated: bool,
    pub run: Pass,
    /// Of the graphs before a break.
    pub traced: Vec<Plan>,
    /// The latest casts: equal ones are one (`fx_graph_cse`).
    pub casts: VecDeque<(u32, Tensor)>,
    /// The storages of kept values.
    pub kept_storages: BTreeMap<usize, u32>,
    /// The work of the operation under way.
    pub flops: f64,
    /// Selective checkpointing keeps what the operation under way makes.
    pub selected: bool,
    /// The share of what the cut for speed keeps that may be kept.
    pub budget: f64,
    /// Kernels since the last operation was complete.
    pub launched: Vec<Launch>,
    /// The kernels that backward runs again.
    pub again: Vec<Launch>,
}

pub(in crate::tape) enum Pass {
    Trace(Graph),
    Run {
        plan: Rc<Plan>,
        /// Of the graphs after a break.
        next: VecDeque<Rc<Plan>>,
        /// The kept values so far, by their ordinals.
        live: BTreeMap<usize, Rc<StorageRef>>,
        /// Nothing is kept: backward makes all of it again, first of all.
        recompute_all: bool,
    },
}

impl Default for Pass {
    fn default() -> Self {
        Self::Trace(Graph::default())
    }
}

/// Keeps a storage alive.
pub(in crate::tape) struct StorageRef {
    pub core: Rc<Core>,
    /// None before backward has made it.
    pub storage: Cell<Option<u32>>,
}
