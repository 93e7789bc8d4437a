//! Autograd: nodes that keep what their backward needs, and the engine that runs them.
//!
//! Follows torch/csrc/autograd: `engine.cpp` (order by sequence number, leaf accumulation first),
//! `input_buffer.cpp` (sums in place where nobody else holds the gradient) and
//! `functions/accumulate_grad.h` (the first gradient is stolen where its layout fits, else copied).

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use smallvec::SmallVec;

use super::backward::{Backward, Grads};
use super::checkpoint::Holder;
use super::fold::{Border, Fold, InRow};
use super::spare::{Spare, keep, placed};
use super::{Category, Core, Param, Scope, Tape, Tensor};

/// Where a tensor's gradient goes.
#[derive(Clone)]
pub(in crate::tape) struct Edge {
    pub node: Rc<Node>,
    pub output: u32,
}

pub(in crate::tape) struct Node {
    sequence: u32,
    scope: Scope,
    fold: Option<Fold>,
    waiting: Cell<u32>,
    seen: Cell<bool>,
    /// Its incoming gradients are of a tensor subclass that the engine never accumulates in place.
    out_of_place: Cell<bool>,
    work: Cell<Work>,
    edges: RefCell<Edges>,
    /// Gradients of its outputs so far; nearly every node has one output.
    buffer: RefCell<SmallVec<[Option<Tensor>; 1]>>,
}

/// What a node does with its incoming gradient.
#[derive(Default)]
enum Work {
    /// It has run already.
    #[default]
    Done,
    Backward(Backward),
    /// `AccumulateGrad`.
    Accumulate(Rc<Param>),
}

/// The edges of an operation; kept small, as every operation has a list of them.
type Edges = SmallVec<[Option<Edge>; 3]>;

impl Node {
    /// A node that adds to a parameter's gradient.
    pub(in crate::tape) fn leaf(param: Rc<Param>) -> Rc<Self> {
        Rc::new(Self {
            sequence: u32::MAX,
            scope: Scope::default(),
            fold: None,
            waiting: Cell::new(0),
            seen: Cell::new(false),
            out_of_place: Cell::new(false),
            work: Cell::new(Work::Accumulate(param)),
            edges: RefCell::default(),
            buffer: RefCell::default(),
        })
    }

    pub(in crate::tape) fn is_leaf(&self) -> bool {
        self.sequence == u32::MAX
    }

    /// A node that leads to it runs without a gradient for it: it is left for later, and does not wait for that one.
    fn pass_over(&self) {
        let waiting = self.waiting.get().saturating_sub(1);
        self.waiting.set(waiting);
        if waiting == 0 && self.seen.replace(false) {
            for edge in self.edges.borrow().iter().flatten() {
                edge.node.pass_over();
            }
        }
    }

    /// The parameter whose gradient it adds to, if it is a leaf.
    fn param(&self) -> Option<Rc<Param>> {
        if !self.is_leaf() {
            return None;
        }
        let work = self.work.take();
        let param = match &work {
            Work::Accumulate(param) => Some(param.clone()),
            Work::Done | Work::Backward(_) => None,
        };
        self.work.set(work);
        param
    }
}

impl InRow for Node {
    fn row(&self) -> Option<Fold> {
        self.fold
    }

    fn buffered<T>(&self, read: impl FnOnce(&[Option<Tensor>]) -> T) -> T {
        read(&self.buffer.borrow())
    }
}

impl Drop for Node {
    /// Drops long chains node by node, so that a deep graph does not exhaust the stack.
    fn drop(&mut self) {
        self.work.take();
        if self.edges.get_mut().is_empty() {
            return;
        }
        let mut pending: Vec<Rc<Node>> = self
            .edges
            .take()
            .into_iter()
            .flatten()
            .map(|edge| edge.node)
            .collect();
        while let Some(node) = pending.pop() {
            if let Some(node) = Rc::into_inner(node) {
                node.work.take();
                pending.extend(
                    node.edges
                        .take()
                        .into_iter()
                        .flatten()
                        .map(|edge| edge.node),
                );
            }
        }
    }
}

thread_local! {
    /// Of nodes that have run.
    static NODES: Spare<Node> = const { Spare::new() };
}

/// The node that an operation adds to the graph, if any.
pub(in crate::tape) struct History(Option<Rc<Node>>);

// Only the call of `build` differs between operations, so the rest is compiled once.
fn node_for(inputs: &[&Tensor], build: impl FnOnce(&Needs) -> Backward) -> Option<Rc<Node>> {
    let edges = edges_of(inputs)?;
    let backward = build(&Needs(&edges));
    node_with(inputs, edges, backward)
}

#[inline(never)]
fn edges_of(inputs: &[&Tensor]) -> Option<Edges> {
    let core = inputs.first()?.core();
    if !core.mode.get().grad
        || core.budget.is_spent()
        || core.left_out.get()
        || !inputs.iter().any(|input| input.requires_grad())
    {
        return None;
    }
    let mut edges = Edges::new();
    for input in inputs {
        edges.push(input.edge());
    }
    Some(edges)
}

#[inline(never)]
fn node_with(inputs: &[&Tensor], edges: Edges, backward: Backward) -> Option<Rc<Node>> {
    Some(new_node(inputs.first()?.core(), edges, backward))
}

fn new_node(core: &Core, edges: Edges, backward: Backward) -> Rc<Node> {
    let sequence = core.sequence.get();
    core.sequence.set(sequence + 1);
    let node = Node {
        sequence,
        scope: core.mode.get().scope,
        fold: core.open.get().fold(),
        waiting: Cell::new(0),
        seen: Cell::new(false),
        out_of_place: Cell::new(false),
        work: Cell::new(Work::Backward(backward)),
        edges: RefCell::new(edges),
        buffer: RefCell::default(),
    };
    placed(&NODES, node)
}

/// Which inputs of an operation need a gradient.
#[allow(missing_debug_implementations)]
pub struct Needs<'a>(&'a [Option<Edge>]);

impl Needs<'_> {
    pub fn input(&self, i: usize) -> bool {
        self.0.get(i).is_some_and(Option::is_some)
    }
}

impl Tensor {
    /// Gives this result its history: `build` saves tensors and returns the backward.
    /// Outside grad mode, or when no input requires a gradient, there is no history and nothing is saved.
    pub fn from_op(self, inputs: &[&Tensor], build: impl FnOnce(&Needs) -> Backward) -> Tensor {
        let history = Self::history(inputs, build);
        self.made_by(history)
    }

    /// The history of an operation before it runs. Generated code saves inputs before it computes, which matters when a
    /// checkpointed segment is recomputed, because recomputation stops at the last saved tensor.
    pub(in crate::tape) fn history(
        inputs: &[&Tensor],
        build: impl FnOnce(&Needs) -> Backward,
    ) -> History {
        History(node_for(inputs, build))
    }

    pub(in crate::tape) fn made_by(self, History(node): History) -> Tensor {
        match node {
            Some(node) => {
                self.core().name_operation(&self);
                self.given_edge(Edge { node, output: 0 })
            }
            None => self,
        }
    }

    /// The same for an operation with several results; this is the first.
    pub fn from_op_with(
        outputs: Vec<Tensor>,
        inputs: &[&Tensor],
        build: impl FnOnce(&Needs) -> Backward,
    ) -> Vec<Tensor> {
        match node_for(inputs, build) {
            Some(node) => Self::all_made_by(&node, outputs),
            None => outputs,
        }
    }

    fn all_made_by(node: &Rc<Node>, outputs: Vec<Tensor>) -> Vec<Tensor> {
        let n = outputs.len();
        node.buffer.borrow_mut().resize(n, None);
        if let Some(first) = outputs.first() {
            first.core().name_operation(first);
        }
        outputs
            .into_iter()
            .enumerate()
            .map(|(i, out)| {
                if out.dtype().is_floating() {
                    out.given_edge(Edge {
                        node: node.clone(),
                        output: i as u32,
                    })
                } else {
                    out
                }
            })
            .collect()
    }

    /// Makes the engine accumulate this tensor's gradients out of place, as it does for `DTensor`s
    /// (`can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp).
    pub(in crate::tape) fn summed_out_of_place(self) -> Tensor {
        if let Some(edge) = self.edge() {
            edge.node.out_of_place.set(true);
        }
        self
    }

    /// Saves this tensor for backward through the active saved-tensor hooks.
    pub fn save(&self) -> Saved {
        self.core().pack(self)
    }

    /// `self.backward()`: frees the graph as it goes.
    pub fn backward(self) {
        let tape = self.tape();
        let Some(edge) = self.edge() else { return };
        let root = tape.empty("ones_like", *self.shape(), self.dtype());
        // `torch.autograd.backward` holds the root gradients to the end.
        tape.run_backward(vec![(edge, root.clone())]);
        drop(root);
    }
}

impl Tape {
    /// `torch.autograd.backward(outputs, gradients)`.
    pub(in crate::tape) fn backward_from(&self, outputs: &[Tensor], gradients: &[Option<Tensor>]) {
        let pairs = outputs.iter().zip(gradients);
        let roots = pairs.filter_map(|(output, g)| Some((output.edge()?, g.clone()?)));
        self.run_backward(roots.collect());
    }
}

/// A tensor saved for backward.
#[allow(missing_debug_implementations)]
pub struct Saved(pub(super) Holder);

impl Saved {
    pub fn unpack(&self) -> Tensor {
        self.0.unpack()
    }
}

struct Ready(Rc<Node>);
impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.0.sequence == other.0.sequence
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.sequence.cmp(&other.0.sequence)
    }
}

impl Tape {
    /// The same for all outputs, each with its gradient.
    pub fn backward_through(&self, outputs: &[Tensor], gradients: &[Tensor]) {
        let gradients: Vec<_> = gradients.iter().cloned().map(Some).collect();
        self.backward_from(outputs, &gradients);
    }

    /// The engine: nodes run in decreasing order of sequence number, leaves as soon as they are ready.
    pub(in crate::tape) fn run_backward(&self, roots: Vec<(Edge, Tensor)>) {
        for (root, _) in &roots {
            count_dependencies(&root.node);
        }
        let mut ready: BinaryHeap<Ready> = BinaryHeap::with_capacity(READY);
        for (root, gradient) in roots {
            add_to_buffer(&root, gradient);
            // A root that another root leads to waits for it.
            let waits = root.node.waiting.get() > 0;
            if !waits && !ready.iter().any(|other| Rc::ptr_eq(&other.0, &root.node)) {
                ready.push(Ready(root.node));
            }
        }
        // Autocast's state belongs to forward code; backward of an operation runs in the dtypes it saved.
        let mode = self.mode().no_grad().with_autocast(None);
        self.within(mode, || self.run_ready(ready));
    }

    fn run_ready(&self, mut ready: BinaryHeap<Ready>) {
        let outer_fold = self.0.open.get().fold();
        let mut border = Border::default();
        let mut leaves = Vec::new();
        while let Some(Ready(node)) = ready.pop() {
            node.seen.set(false);
            if !node.is_leaf() {
                // Before the gradient is taken: these are the gradients that a finished row passes on.
                self.enter_fold(&*node, &mut border);
            }
            let incoming: Grads = node.buffer.take().into_iter().collect();
            if let Some(param) = node.param() {
                if let Some(gradient) = incoming.into_iter().next().flatten() {
                    param.accumulate(gradient);
                    let after = param.post_accumulate_grad.borrow().clone();
                    if let Some(after) = after {
                        after(&param);
                    }
                }
                leaves.push(param);
                continue;
            }
            self.enter(node.scope);
            let mut outgoing = match node.work.take() {
                Work::Backward(backward) if incoming.iter().any(Option::is_some) => {
                    backward(incoming)
                }
                _ => Grads::new(),
            };
            let puts_off = self.0.has_put_off();
            let mut put_off = Vec::new();
            for (place, edge) in node.edges.take().into_iter().enumerate() {
                let gradient = outgoing.get_mut(place).and_then(Option::take);
                let Some(edge) = edge else { continue };
                if puts_off && gradient.is_none() {
                    edge.node.pass_over();
                    put_off.push((place, edge));
                    continue;
                }
                if let Some(gradient) = gradient {
                    add_to_buffer(&edge, gradient);
                }
                if node.fold.is_some() && edge.node.fold != node.fold && !edge.node.is_leaf() {
                    border.touched.push(edge.node.clone());
                }
                let waiting = edge.node.waiting.get().saturating_sub(1);
                edge.node.waiting.set(waiting);
                if waiting == 0 {
                    ready.push(Ready(edge.node));
                }
            }
            if puts_off {
                self.0.take_put_off(node.scope, put_off);
            }
            if Rc::strong_count(&node) == 1 {
                keep(&NODES, node);
            }
        }
        // A leaf that is not a parameter lives as long as the graph, and so does its gradient.
        for param in leaves
            .iter()
            .filter(|param: &&Rc<Param>| param.is_leaf_tensor())
        {
            self.hold_with_graph(&param.tensor());
        }
        drop(leaves);
        if outer_fold.is_none() {
            self.leave_fold(&mut border);
        }
    }
}

/// The queue of ready nodes: short in a chain of layers.
const READY: usize = 32;

fn count_dependencies(root: &Rc<Node>) {
    if root.seen.replace(true) {
        return;
    }
    let mut stack = Vec::with_capacity(READY);
    stack.push(root.clone());
    while let Some(node) = stack.pop() {
        for edge in node.edges.borrow().iter().flatten() {
            edge.node.waiting.set(edge.node.waiting.get() + 1);
            if !edge.node.seen.replace(true) {
                stack.push(edge.node.clone());
            }
        }
    }
}

fn add_to_buffer(edge: &Edge, gradient: Tensor) {
    let mut buffer = edge.node.buffer.borrow_mut();
    let place = edge.output as usize;
    while buffer.len() <= place {
        buffer.push(None);
    }
    buffer[place] = Some(match buffer[place].take() {
        None => gradient,
        Some(old)
            if old.is_sole_owner()
                && old.is_dense()
                && !edge.node.out_of_place.get()
                && !old.core().accumulates_out_of_place.get() =>
        {
            old.add_in_place(&gradient)
        }
        Some(old) => old.plus(&gradient),
    });
}

impl Param {
    /// `AccumulateGrad`: steal, copy or add.
    fn accumulate(&self, gradient: Tensor) {
        let mut slot = self.grad.borrow_mut();
        *slot = Some(match slot.take() {
            Some(old) => old.add_in_place(&gradient),
            None => {
                let tape = self.data.tape();
                if self.fold.is_none() && tape.0.open.get().fold().is_some() {
                    // Layers that share it: the first sets the gradient, the others add to it.
                    tape.break_folds();
                }
                // A gradient of another size is a `DTensor` not yet redistributed to its parameter's placement.
                let as_laid_out = gradient.numel() != self.data.numel()
                    || gradient.layout().lies_like(self.data.layout());
                let steals = gradient.is_last_handle() && gradient.is_dense() && as_laid_out;
                let new = if steals {
                    gradient
                } else {
                    gradient.copied("clone", *self.data.layout())
                };
                new.set_category(Category::Gradients);
                new
            }
        });
    }
}

/// Where a tensor's gradient goes, without the tensor (`torch.autograd.graph.GradientEdge`).
#[derive(Clone)]
#[allow(missing_debug_implementations)]
pub struct GradientEdge(Edge);

/// A node created on its own, not by an operation on tensors.
#[derive(Clone)]
#[allow(missing_debug_implementations)]
pub struct GraphNode(Rc<Node>);

impl GraphNode {
    /// The edge of one of its outputs.
    pub fn edge(&self, output: u32) -> GradientEdge {
        GradientEdge(Edge {
            node: self.0.clone(),
            output,
        })
    }
}

impl Tensor {
    pub fn gradient_edge(&self) -> Option<GradientEdge> {
        self.edge().map(GradientEdge)
    }

    /// The same tensor as a result with this gradient edge.
    pub fn with_gradient_edge(&self, edge: Option<GradientEdge>) -> Tensor {
        self.with_edge(edge.map(|GradientEdge(edge)| edge))
    }
}

impl Tape {
    /// A node of a graph built node by node: the edges of its gradients, and the backward that computes them. `None` where no
    /// gradient is needed.
    pub fn graph_node(
        &self,
        edges: impl IntoIterator<Item = Option<GradientEdge>>,
        backward: impl FnOnce() -> Backward,
    ) -> Option<GraphNode> {
        let edges: Edges = edges
            .into_iter()
            .map(|edge| edge.map(|GradientEdge(edge)| edge))
            .collect();
        if !self.0.mode.get().grad || edges.iter().all(Option::is_none) {
            return None;
        }
        Some(GraphNode(new_node(&self.0, edges, backward())))
    }
}
