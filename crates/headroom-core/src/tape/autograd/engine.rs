//! The engine that runs the nodes of a graph.
//!
//! Follows torch/csrc/autograd: `engine.cpp` (order by sequence number, leaf accumulation first),
//! `input_buffer.cpp` (sums in place where nobody else holds the gradient) and
//! `functions/accumulate_grad.h` (the first gradient is stolen where its layout fits, else copied).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use super::NODES;
use crate::tape::compile::Compiled;
use crate::tape::core::{Edge, Node, Work};
use crate::tape::fold::Border;
use crate::tape::spare::keep;
use crate::tape::{Category, Grads, Param, Tape, Tensor};

impl Tensor {
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

    /// The same for all outputs, each with its gradient.
    pub fn backward_with(&self, outputs: &[Tensor], gradients: &[Tensor]) {
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
            node.visited.set(false);
            if !node.is_leaf() {
                // Before the gradient is taken: these are the gradients that a finished row passes on.
                self.enter_fold(&node, &mut border);
            }
            let incoming: Grads = node.buffer.take().into_iter().collect();
            if let Some(param) = node.param() {
                if let Some(gradient) = incoming.into_iter().next().flatten() {
                    gradient.allocate_deferred();
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
            self.0.autograd.running.set(node.sequence);
            let mut outgoing = match node.work.take() {
                Work::Backward(backward) if incoming.iter().any(Option::is_some) => {
                    self.0.run_compiled(node.compiled, incoming, backward)
                }
                _ => Grads::new(),
            };
            let defers = self.0.has_deferred();
            let mut deferred = Vec::new();
            for (place, edge) in node.edges.take().into_iter().enumerate() {
                let gradient = outgoing.get_mut(place).and_then(Option::take);
                let Some(edge) = edge else { continue };
                if defers && gradient.is_none() {
                    edge.node.pass_over();
                    deferred.push((place, edge));
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
            if defers {
                self.0.take_deferred(node.scope, deferred);
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
            self.keep_with_graph(&param.tensor());
        }
        drop(leaves);
        if outer_fold.is_none() {
            self.leave_fold(&mut border);
        }
    }
}

/// The queue of ready nodes: short in a chain of layers.
const READY: usize = 32;

impl Edge {
    /// Adds a gradient before any other arrives.
    pub(super) fn wait_with(&self, gradient: Tensor) {
        add_to_buffer(self, gradient);
    }
}

fn count_dependencies(root: &Rc<Node>) {
    if root.visited.replace(true) {
        return;
    }
    let mut stack = Vec::with_capacity(READY);
    stack.push(root.clone());
    while let Some(node) = stack.pop() {
        for edge in node.edges.borrow().iter().flatten() {
            edge.node.waiting.set(edge.node.waiting.get() + 1);
            if !edge.node.visited.replace(true) {
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
            if old.is_deferred()
                || gradient.is_deferred()
                || edge.node.compiled != Compiled::Not =>
        {
            old.plus_fused(gradient)
        }
        Some(old)
            if old.is_sole_owner()
                && old.is_dense()
                && !edge.node.out_of_place.get()
                && !old.core().autograd.accumulates_out_of_place.get() =>
        {
            old.add_in_place(&gradient)
        }
        Some(old) => old.plus(&gradient),
    });
}

impl Param {
    /// A gradient that arrives from another backward pass than the step's own.
    pub(crate) fn receive(self: &Rc<Self>, gradient: Tensor) {
        self.accumulate(gradient);
        let after = self.post_accumulate_grad.borrow().clone();
        if let Some(after) = after {
            after(self);
        }
    }

    /// `AccumulateGrad`: steal, copy or add.
    fn accumulate(&self, gradient: Tensor) {
        let mut slot = self.grad.borrow_mut();
        *slot = Some(match slot.take() {
            Some(old) => {
                let sum = old.add_in_place(&gradient);
                self.data.tape().has_added(gradient);
                sum
            }
            None => {
                let tape = self.data.tape();
                if self.fold.is_none() && tape.0.open.get().fold().is_some() {
                    // Layers that share it: the first sets the gradient, the others add to it.
                    tape.break_folds();
                }
                // A gradient of another size is a `DTensor` not yet redistributed to its parameter's placement.
                let as_laid_out = gradient.numel() != self.data.numel()
                    || gradient.layout().same_memory_order(self.data.layout());
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

/// A node whose gradients have all arrived.
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
