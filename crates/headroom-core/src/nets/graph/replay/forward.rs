//! What Python's names hold while forward is replayed.

use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use super::super::program::{Program, Value};
use super::super::region;
use crate::tape::{GradientEdge, GraphNode, Param, Saved, Tensor};

/// What Python's names hold in forward, and the graph so far.
#[derive(Default)]
pub(super) struct Forward {
    pub slots: Vec<Option<Tensor>>,
    pub saves: Vec<Kept>,
    pub nodes: Vec<Option<GraphNode>>,
    pub leaves: BTreeMap<u32, GradientEdge>,
    /// The parameters whose gradients lie in this memory.
    pub given: BTreeMap<u32, Rc<Param>>,
    /// What the model has returned.
    pub outputs: Vec<Tensor>,
    /// Destinations of gradients that leave a wrapped module.
    pub edges: BTreeMap<region::Output, GradientEdge>,
    pub batch: VecDeque<Tensor>,
    /// Tensors of the batch that require a gradient.
    pub held: Vec<Tensor>,
}

/// A saved tensor: at hand, or a node's.
#[derive(Clone, Default)]
pub(super) enum Kept {
    #[default]
    None,
    Here(Rc<Saved>),
    There(Weak<Saved>),
}

impl Forward {
    pub(crate) fn replaced(&mut self, slot: u32, tensor: Option<Tensor>) -> Option<Tensor> {
        let place = self.slots.get_mut(slot as usize);
        place.and_then(|place| std::mem::replace(place, tensor))
    }

    pub(crate) fn at(&self, slot: u32) -> Option<Tensor> {
        self.slots.get(slot as usize).cloned().flatten()
    }

    pub(crate) fn bind_to(&mut self, value: Option<&Value>, tensor: Tensor) {
        if let Some(value) = value {
            self.replaced(value.slot, Some(tensor));
        }
    }

    pub(crate) fn lacks(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_none_or(Option::is_none)
    }

    /// Where the gradient of a leaf goes: a parameter, or another tensor that requires one; `held` by the batch or by the graph alone.
    pub(crate) fn leaf(&mut self, slot: u32, held: bool) -> Option<GradientEdge> {
        if let Some(edge) = self.leaves.get(&slot) {
            return Some(edge.clone());
        }
        let leaf = self.at(slot)?.requires_grad_();
        let edge = leaf.gradient_edge()?;
        self.held.extend(held.then_some(leaf));
        self.leaves.insert(slot, edge.clone());
        Some(edge)
    }

    /// The destination of the gradient of a node's output.
    pub(crate) fn edge(&self, (node, output): region::Output) -> Option<GradientEdge> {
        if let Some(edge) = self.edges.get(&(node, output)) {
            return Some(edge.clone());
        }
        let node = self.nodes.get(node as usize)?.as_ref()?;
        Some(node.edge(output))
    }

    /// Local variables of a program: dropped once its forward has returned.
    pub(crate) fn grow(&mut self, program: &Program) {
        if self.slots.len() < program.steps.slots {
            self.slots.resize(program.steps.slots, None);
            self.saves.resize(program.steps.saves, Kept::None);
            self.nodes.resize(program.steps.nodes.len(), None);
        }
    }
}
