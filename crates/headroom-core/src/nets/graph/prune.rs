//! What is left of a recorded graph where fewer parameters are trained than were when it was recorded: nodes that nobody
//! wants a gradient of are not made, and others do less and keep less.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::program::{Edge, Instruction, Node, Program, Value, Values};
use crate::tape::ops::Call;

/// The nodes that do less than was recorded, and the saved tensors that nothing unpacks.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    nodes: BTreeMap<u32, Node>,
    /// Calls that compute fewer gradients; a step names them by numbers behind the program's own.
    calls: Vec<Call>,
    unsaved: BTreeSet<u32>,
}

impl Pruned {
    /// For the parameters that are trained, by their memory, and the nodes whose results ask for gradients in any case.
    pub(crate) fn of(
        program: &Program,
        trained: impl Fn(u32) -> bool,
        is_needed: impl Fn(u32) -> bool,
    ) -> Self {
        let mut pruned = Self::default();
        let mut wanted: Vec<bool> = Vec::with_capacity(program.steps.nodes.len());
        for (number, node) in (0_u32..).zip(&program.steps.nodes) {
            let needs: Vec<Option<bool>> = node
                .edges
                .iter()
                .map(|edge| match edge {
                    Edge::None => None,
                    Edge::Leaf(slot) => Some(trained(*slot)),
                    Edge::Node { node, .. } => Some(wanted.get(*node as usize) == Some(&true)),
                })
                .collect();
            let any = needs.contains(&Some(true));
            wanted.push(any || is_needed(number));
            if !any {
                pruned.unsaved.extend(&node.saves);
            } else if needs.contains(&Some(false)) {
                let less = pruned.less(program, node, &needs);
                let kept: BTreeSet<u32> = less.saves.iter().copied().collect();
                let gone = node.saves.iter().filter(|save| !kept.contains(save));
                pruned.unsaved.extend(gone);
                pruned.nodes.insert(number, less);
            }
        }
        pruned
    }

    pub(crate) fn node<'a>(&'a self, program: &'a Program, number: u32) -> Option<&'a Node> {
        let less = self.nodes.get(&number);
        less.or_else(|| program.steps.nodes.get(number as usize))
    }

    pub(crate) fn call<'a>(&'a self, program: &'a Program, number: u32) -> Option<&'a Call> {
        let own = (number as usize).checked_sub(program.calls.len());
        match own {
            Some(own) => self.calls.get(own),
            None => program.calls.get(number as usize),
        }
    }

    pub(crate) fn saves(&self, save: u32) -> bool {
        !self.unsaved.contains(&save)
    }

    /// A node that makes the gradients that are needed alone.
    fn less(&mut self, program: &Program, node: &Node, needs: &[Option<bool>]) -> Node {
        let outgoing: SmallVec<[_; 2]> = node
            .outgoing
            .iter()
            .enumerate()
            .map(|(at, gradient)| gradient.filter(|_| needs.get(at) != Some(&Some(false))))
            .collect();
        let mut used: BTreeSet<u32> = outgoing.iter().flatten().map(|g| g.value.slot).collect();
        let dropped: BTreeSet<u32> = node
            .outgoing
            .iter()
            .flatten()
            .map(|gradient| gradient.value.slot)
            .filter(|slot| !used.contains(slot))
            .collect();
        let mut steps = Vec::with_capacity(node.steps.len());
        let mut kept = BTreeSet::new();
        for step in node.steps.iter().rev() {
            match step {
                Instruction::Call {
                    call,
                    scope,
                    inputs,
                    made,
                } => {
                    let in_place = inputs
                        .first()
                        .is_some_and(|value| used.contains(&value.slot));
                    let makes = made.iter().any(|value| used.contains(&value.slot));
                    if !(makes || made.is_empty() && in_place) {
                        continue;
                    }
                    used.extend(inputs.iter().map(|value| value.slot));
                    let goes = |value: &&Value| !dropped.contains(&value.slot);
                    let left: Values = made.iter().filter(goes).copied().collect();
                    let call = if left.len() == made.len() {
                        *call
                    } else {
                        self.with_fewer_outputs(program, *call, made, &left)
                    };
                    kept.extend(left.iter().map(|value| value.slot));
                    steps.push(Instruction::Call {
                        call,
                        scope: *scope,
                        inputs: inputs.clone(),
                        made: left,
                    });
                }
                Instruction::Unpack { slot, .. } if !used.contains(slot) => {}
                step => steps.push(step.clone()),
            }
        }
        steps.reverse();
        let unpacked: BTreeSet<u32> = steps
            .iter()
            .filter_map(|step| match step {
                Instruction::Unpack { save, .. } => Some(*save),
                _ => None,
            })
            .collect();
        Node {
            edges: node.edges.clone(),
            saves: node
                .saves
                .iter()
                .filter(|save| unpacked.contains(save))
                .copied()
                .collect(),
            incoming: node.incoming.clone(),
            steps,
            outgoing,
        }
    }

    /// The number of a call that makes only what is left of its gradients.
    fn with_fewer_outputs(
        &mut self,
        program: &Program,
        call: u32,
        made: &[Value],
        left: &[Value],
    ) -> u32 {
        let Some(whole) = program.calls.get(call as usize) else {
            return call;
        };
        let kept: Vec<bool> = made
            .iter()
            .map(|value| left.iter().any(|other| other.slot == value.slot))
            .collect();
        let less = whole.with_outputs(&kept);
        let own = self.calls.iter().position(|known| *known == less);
        let place = own.unwrap_or_else(|| {
            self.calls.push(less);
            self.calls.len() - 1
        });
        u32::try_from(program.calls.len() + place).unwrap_or(call)
    }
}
