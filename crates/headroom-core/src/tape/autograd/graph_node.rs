//! Graphs made node by node, not by operations on tensors.

use std::rc::Rc;

use super::new_node;
use crate::tape::core::{Edge, Edges, Node};
use crate::tape::{Backward, Tape, Tensor};

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

impl GradientEdge {
    /// Adds a gradient before any other arrives.
    pub(in crate::tape) fn wait_with(&self, gradient: Tensor) {
        self.0.wait_with(gradient);
    }
}

impl Tensor {
    pub(crate) fn gradient_edge(&self) -> Option<GradientEdge> {
        self.edge().map(GradientEdge)
    }

    /// The same tensor as a result with this gradient edge.
    pub fn with_gradient_edge(&self, edge: Option<GradientEdge>) -> Tensor {
        self.with_edge(edge.map(|GradientEdge(edge)| edge))
    }
}

impl Tape {
    /// Makes nodes as a backward pass with `create_graph` does: CUDA's runs in a thread of its own, and sequence numbers count by
    /// thread (`at::sequence_number` in ATen/SequenceNumber.cpp).
    pub(crate) fn in_backward_thread<T>(&self, body: impl FnOnce() -> T) -> T {
        let autograd = &self.0.autograd;
        let main = autograd.sequence.replace(autograd.inner_sequence.get());
        let made = body();
        let inner = autograd.sequence.replace(main);
        autograd.inner_sequence.set(inner);
        made
    }

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
        if !self.0.ambient.mode.get().grad || edges.iter().all(Option::is_none) {
            return None;
        }
        Some(GraphNode(new_node(&self.0, edges, backward())))
    }
}
