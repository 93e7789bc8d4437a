//! The nodes of a recorded program: made in forward, replayed in backward.

use std::rc::Rc;

use super::super::program::{Edge, Instruction, Node, Value};
use super::Replay;
use super::forward::Kept;
use crate::tape::{Category, Grads, Saved, Tensor};

impl Replay {
    pub(super) fn make_node(self: &Rc<Self>, number: u32) {
        let Some(node) = self.pruned.node(&self.program, number) else {
            return;
        };
        let mut forward = self.forward.borrow_mut();
        let edges = node.edges.iter().map(|edge| match edge {
            Edge::None => None,
            // Parameters were bound before; one that is not trained wants no gradient.
            Edge::Leaf(slot) if self.plan.params.contains_key(slot) => {
                forward.leaves.get(slot).cloned()
            }
            Edge::Leaf(slot) => forward.leaf(*slot, self.program.held.contains(slot)),
            Edge::Node { node, output } => forward.edge((*node, *output)),
        });
        let edges: Vec<_> = edges.collect();
        let mut saves: Vec<(u32, Rc<Saved>)> = Vec::with_capacity(node.saves.len());
        for save in &node.saves {
            let Some(place) = forward.saves.get_mut(*save as usize) else {
                continue;
            };
            if let Kept::Here(saved) = place {
                let saved = saved.clone();
                *place = Kept::There(Rc::downgrade(&saved));
                saves.push((*save, saved));
            }
        }
        drop(forward);
        let replay = self.clone();
        let make = || {
            self.tape.graph_node(edges, || {
                Box::new(move |incoming| replay.backward(number, incoming, saves))
            })
        };
        let made = match self.program.inner.binary_search(&number) {
            Ok(_) => self.tape.in_backward_thread(make),
            Err(_) => make(),
        };
        let mut forward = self.forward.borrow_mut();
        if let Some(place) = forward.nodes.get_mut(number as usize) {
            *place = made;
        }
    }

    /// What a node does with its incoming gradients, which live until it has returned.
    fn backward(&self, number: u32, incoming: Grads, saves: Vec<(u32, Rc<Saved>)>) -> Grads {
        let Some(node) = self.pruned.node(&self.program, number) else {
            return Grads::new();
        };
        let hold = |slot: u32, tensor: Option<Tensor>| {
            let mut slots = self.slots.borrow_mut();
            let place = slots.get_mut(slot as usize);
            let old = place.and_then(|place| std::mem::replace(place, tensor));
            drop(slots);
            drop(old);
        };
        for step in &node.steps {
            match step {
                Instruction::Unpack { slot, save } => {
                    let saved = saves.iter().find(|(known, _)| known == save);
                    hold(*slot, saved.map(|(_, saved)| saved.unpack()));
                }
                Instruction::Call { made, .. } => {
                    for (value, result) in made.iter().zip(self.call(step)) {
                        hold(value.slot, Some(result));
                    }
                }
                Instruction::Free(slot) => hold(*slot, None),
                _ => {}
            }
        }
        let outgoing = node.outgoing.iter().map(|gradient| {
            let gradient = gradient.as_ref()?;
            Some(self.outgoing(node, gradient.value, gradient.view, &incoming))
        });
        let outgoing: Grads = outgoing.collect();
        for gradient in node.outgoing.iter().flatten() {
            hold(gradient.value.slot, None);
        }
        outgoing
    }

    fn outgoing(&self, node: &Node, value: Value, view: bool, incoming: &Grads) -> Tensor {
        let looks = self.types.get(value);
        let passed = node
            .incoming
            .iter()
            .position(|slot| *slot == Some(value.slot));
        let passed = passed.and_then(|place| incoming.get(place).cloned().flatten());
        let bound = self.slots.borrow().get(value.slot as usize).cloned();
        match bound.flatten().or(passed) {
            Some(tensor) if *tensor.layout() == looks.layout && !view => tensor,
            Some(tensor) => tensor.with_layout(looks.layout, view),
            None => {
                let fresh = self.tape.empty_as("recorded", looks.layout, looks.dtype);
                fresh.set_category(Category::BackwardTemporaries);
                fresh
            }
        }
    }
}
