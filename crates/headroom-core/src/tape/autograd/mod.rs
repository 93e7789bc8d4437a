//! Autograd: nodes that keep what their backward needs, and the engine that runs them.

mod engine;
mod graph_node;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use smallvec::SmallVec;

use super::compile::Compiled;
use super::core::{Edge, Edges, Holder, Node, Work};
use super::spare::{Spare, keep, placed};
use super::{Backward, Core, Param, Saved, Scope, Tensor};
pub(crate) use graph_node::{GradientEdge, GraphNode};

impl Node {
    /// A node that adds to a parameter's gradient.
    pub(in crate::tape) fn leaf(param: Rc<Param>) -> Rc<Self> {
        Rc::new(Self {
            sequence: u32::MAX,
            scope: Scope::default(),
            fold: None,
            waiting: Cell::new(0),
            visited: Cell::new(false),
            out_of_place: Cell::new(false),
            compiled: Compiled::Not,
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
        if waiting == 0 && self.visited.replace(false) {
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

impl Drop for Node {
    /// Drops long chains node by node, so that a deep graph does not exhaust the stack.
    fn drop(&mut self) {
        self.work.take();
        if self.edges.get_mut().is_empty() {
            return;
        }
        let edges = self.edges.get_mut().drain(..).flatten();
        let mut pending: SmallVec<[Rc<Self>; 4]> = edges.map(|edge| edge.node).collect();
        while let Some(mut node) = pending.pop() {
            if let Some(unused) = Rc::get_mut(&mut node) {
                unused.work.take();
                let edges = unused.edges.get_mut().drain(..).flatten();
                pending.extend(edges.map(|edge| edge.node));
                unused.buffer.get_mut().clear();
                keep(&NODES, node);
            }
        }
    }
}

thread_local! {
    /// Of nodes that have run, or never will.
    static NODES: Spare<Node> = const { Spare::new() };
}

/// The node that an operation adds to the graph, if any.
pub(in crate::tape) struct History(Option<Rc<Node>>);

// Only the call of `build` differs between operations, so the rest is compiled once.
fn node_for(inputs: &[&Tensor], build: impl FnOnce(&Needs) -> Backward) -> Option<Rc<Node>> {
    if let Some(first) = inputs.first() {
        first.core().begin_operation(inputs);
    }
    let edges = edges_of(inputs)?;
    let backward = build(&Needs(&edges));
    node_with(inputs, edges, backward)
}

#[inline(never)]
fn edges_of(inputs: &[&Tensor]) -> Option<Edges> {
    let core = inputs.first()?.core();
    if !core.ambient.mode.get().grad
        || core.budget.is_spent()
        || core.ambient.shapes_only.get()
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
    let sequence = core.autograd.sequence.get();
    core.autograd.sequence.set(sequence + 1);
    let node = Node {
        sequence,
        scope: core.ambient.mode.get().scope,
        fold: core.open.get().fold(),
        waiting: Cell::new(0),
        visited: Cell::new(false),
        out_of_place: Cell::new(false),
        compiled: core.compiled_as(),
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
        self.with_history(history)
    }

    /// The history of an operation before it runs. Generated code saves inputs before it computes, which matters when a
    /// checkpointed segment is recomputed, because recomputation stops at the last saved tensor.
    pub(in crate::tape) fn history(
        inputs: &[&Tensor],
        build: impl FnOnce(&Needs) -> Backward,
    ) -> History {
        History(node_for(inputs, build))
    }

    pub(in crate::tape) fn with_history(self, History(node): History) -> Tensor {
        self.core().end_operation();
        match node {
            Some(node) => {
                self.core().name_operation(&self);
                self.into_with_edge(Edge { node, output: 0 })
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
        let node = node_for(inputs, build);
        if let Some(first) = outputs.first() {
            first.core().end_operation();
        }
        match node {
            Some(node) => Self::with_shared_node(&node, outputs),
            None => outputs,
        }
    }

    fn with_shared_node(node: &Rc<Node>, outputs: Vec<Tensor>) -> Vec<Tensor> {
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
                    out.into_with_edge(Edge {
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

    /// The leaf of the graph that this tensor is, with its gradient once there is one; `None` of an operation's output.
    pub fn leaf_param(&self) -> Option<Rc<Param>> {
        self.leaf()?.param()
    }

    /// Saves this tensor for backward through the innermost saved-tensor hook.
    pub fn save(&self) -> Saved {
        let core = self.core();
        let hook = core.autograd.hooks.borrow().last().cloned();
        Saved(match hook {
            Some(hook) => hook.pack(self),
            None => {
                core.record_saved(self);
                core.keep_for_split(|| Holder::Saved(self.saved_variable()));
                match core.pack_compiled(self) {
                    Some(recomputed) => Holder::Packed(Rc::new(recomputed)),
                    None => Holder::Saved(self.saved_variable()),
                }
            }
        })
    }
}

impl Saved {
    pub fn unpack(&self) -> Tensor {
        match &self.0 {
            Holder::Packed(packed) => packed.unpack(),
            Holder::Saved(saved) => {
                let tensor = saved.tensor();
                tensor.core().note_read(&tensor);
                tensor
            }
        }
    }
}
