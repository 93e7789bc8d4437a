//! Replaying a program on the tape.

mod backward;
mod forward;
mod regions;

use std::cell::RefCell;
use std::rc::Rc;

use super::super::{Cx, Output};
use super::params::{Held, held};
use super::plan::Plan;
use super::program::{Declared, Edge, Graph, Instruction, Program, Role};
use super::prune::Pruned;
use super::types::Types;
use crate::tape::{Category, Scope, Tape, Tensor};
use forward::{Forward, Kept};

/// What is replayed: a program at a batch and length, and what is known of it.
pub(super) struct Replayed {
    pub graph: Rc<Graph>,
    pub program: Rc<Program>,
    pub plan: Rc<Plan>,
    pub sizes: (u64, u64),
    pub by_module: bool,
    pub by_layer: bool,
}

/// The scopes of modules by their paths. Neighbours in a list mostly stand in the same modules.
fn scopes(tape: &Tape, outer: Scope, paths: &[Vec<String>]) -> Vec<Scope> {
    let mut inside: Vec<(&String, Scope)> = Vec::new();
    let mut all = Vec::with_capacity(paths.len());
    for names in paths {
        let known = inside.iter().zip(names);
        let shared = known.take_while(|((known, _), name)| known == name).count();
        inside.truncate(shared);
        for name in names.iter().skip(shared) {
            let parent = inside.last().map_or(outer, |(_, scope)| *scope);
            inside.push((name, tape.named_scope_in(parent, name)));
        }
        all.push(inside.last().map_or(outer, |(_, scope)| *scope));
    }
    all
}

/// A recorded step while it runs.
pub(super) struct Replay {
    tape: Tape,
    graph: Rc<Graph>,
    program: Rc<Program>,
    plan: Rc<Plan>,
    pruned: Pruned,
    types: Types,
    scopes: Vec<Scope>,
    /// Whether linear modules run by the tape's own rules, which know of adapters and quantised weights.
    by_module: bool,
    forward: RefCell<Forward>,
    /// What backward's functions hold.
    slots: RefCell<Vec<Option<Tensor>>>,
}

impl Replay {
    pub(crate) fn run(cx: &Cx, replayed: Replayed, batch: &[Tensor]) -> Output {
        let Replayed {
            graph,
            program,
            plan,
            sizes,
            by_module,
            by_layer,
        } = replayed;
        let tape = cx.tape.clone();
        let outer = tape.scope();
        let mut replay = Self {
            types: Types::at(&program, sizes),
            scopes: scopes(&tape, outer, &program.scopes),
            slots: RefCell::default(),
            forward: RefCell::new(Forward {
                slots: vec![None; program.steps.slots],
                saves: vec![Kept::None; program.steps.saves],
                nodes: vec![None; program.steps.nodes.len()],
                batch: batch.iter().cloned().collect(),
                ..Forward::default()
            }),
            pruned: Pruned::default(),
            tape,
            graph,
            program,
            plan,
            by_module,
        };
        replay.prune(cx);
        let replay = Rc::new(replay);
        let all = 0..replay.program.steps.forward.len();
        let used = replay.used(&all, by_layer);
        replay.bind_params(cx, &used);
        replay.bind_kept(cx);
        replay.steps(cx, all, by_layer);
        replay.tape.enter(outer);
        replay.output(cx)
    }

    /// What forward returns. What neither a node nor a variable holds is freed now; the rest is freed with the graph.
    fn output(&self, cx: &Cx) -> Output {
        let (value, node) = self.program.steps.loss;
        let mut forward = std::mem::take(&mut *self.forward.borrow_mut());
        let kept = self.program.kept.iter();
        let kept = kept.map(|(_, later)| forward.at(*later)).collect();
        cx.env.shared.persistent_attributes.replace(kept);
        let edge = forward.edge((node, 0));
        let loss = forward
            .slots
            .get_mut(value.slot as usize)
            .and_then(Option::take);
        for param in &self.graph.params {
            if let Some(slot) = forward.slots.get_mut(param.slot as usize) {
                *slot = None;
            }
        }
        self.slots.replace(forward.slots);
        let mut held = cx.env.shared.batch_leaves.borrow_mut();
        held.append(&mut forward.held);
        drop(held);
        let loss = loss.unwrap_or_else(|| Output::empty(cx).loss);
        Output {
            loss: loss.with_gradient_edge(edge),
            held: forward.outputs,
        }
    }

    /// The gradient that a backward pass within forward gives a parameter.
    fn give(&self, cx: &Cx, leaf: u32, gradient: u32) {
        let place = self.plan.params.get(&leaf);
        let declared = place.and_then(|place| self.graph.params.get(*place));
        let Some(Held::Param(param)) = declared.map(|declared| held(cx, declared)) else {
            return;
        };
        let mut forward = self.forward.borrow_mut();
        if forward.given.contains_key(&gradient) || !param.trainable {
            return;
        }
        let tensor = forward.replaced(gradient, None);
        forward.given.insert(gradient, param.clone());
        drop(forward);
        if let Some(tensor) = tensor {
            param.receive(tensor);
        }
    }

    /// Leaves out what nobody wants a gradient of, where less is trained than was recorded.
    fn prune(&mut self, cx: &Cx) {
        let params = self.graph.params.iter();
        let trained = |declared: &Declared| {
            let of_module = self.by_module && self.plan.holds(declared.slot);
            !of_module && held(cx, declared).is_trainable()
        };
        let frozen: Vec<u32> = params
            .filter(|declared| declared.role == Role::Trained && !trained(declared))
            .map(|declared| declared.slot)
            .collect();
        if frozen.is_empty() {
            return;
        }
        let asks = |node: u32| self.by_module && self.plan.replaces(node);
        self.pruned = Pruned::of(&self.program, |slot| !frozen.contains(&slot), asks);
    }

    /// The parameters and buffers that some steps use; `outside` leaves out what happens in layers.
    fn used(&self, range: &std::ops::Range<usize>, outside: bool) -> Vec<usize> {
        let mut found = Vec::new();
        let by_slot = &self.plan.params;
        let mut known = vec![false; self.graph.params.len()];
        let mut note = |slot: u32| {
            if let Some(place) = by_slot.get(&slot)
                && let Some(known) = known.get_mut(*place)
                && !std::mem::replace(known, true)
            {
                found.push(*place);
            }
        };
        let mut at = range.start;
        while at < range.end {
            if outside && let Some(layer) = self.plan.layer_at(at) {
                at = layer.region.steps.end.max(at + 1);
                continue;
            }
            if self.by_module
                && let Some(linear) = self.plan.linear_at(at)
            {
                at = linear.region.steps.end.max(at + 1);
                continue;
            }
            match self.program.steps.forward.get(at) {
                Some(Instruction::Call { inputs, .. }) => {
                    for value in inputs {
                        note(value.slot);
                    }
                }
                Some(Instruction::Save { value, .. }) => note(value.slot),
                Some(Instruction::Node(node)) => {
                    let node = self.program.steps.nodes.get(*node as usize);
                    for edge in node.iter().flat_map(|node| &node.edges) {
                        if let Edge::Leaf(slot) = edge {
                            note(*slot);
                        }
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn bind_params(&self, cx: &Cx, places: &[usize]) {
        for declared in places
            .iter()
            .filter_map(|place| self.graph.params.get(*place))
        {
            let tensor = held(cx, declared).tensor();
            let mut forward = self.forward.borrow_mut();
            if let Some(edge) = tensor.gradient_edge() {
                forward.leaves.insert(declared.slot, edge);
            }
            drop(forward);
            self.bind(declared.slot, Some(tensor.detach()));
        }
    }

    /// What modules have kept from the step before. In the first step there is none of it but what stays for good.
    fn bind_kept(&self, cx: &Cx) {
        let mut before = cx.env.shared.persistent_attributes.take().into_iter();
        for (value, later) in &self.program.kept {
            let kept = before.next().flatten().or_else(|| {
                let looks = self.types.get(*value);
                let made = || self.tape.empty_as("recorded", looks.layout, looks.dtype);
                let made = (value.slot == *later).then(made)?;
                made.set_category(Category::Buffers);
                Some(made)
            });
            self.bind(value.slot, kept);
        }
    }

    /// Runs steps of forward; `whole` where layers among them are to be run as such.
    fn steps(self: &Rc<Self>, cx: &Cx, range: std::ops::Range<usize>, whole: bool) {
        let mut at = range.start;
        while at < range.end {
            if whole && let Some(layer) = self.plan.layer_at(at) {
                self.layer(cx, layer);
                at = layer.region.steps.end.max(at + 1);
                continue;
            }
            if self.by_module
                && let Some(linear) = self.plan.linear_at(at)
            {
                self.linear(cx, linear);
                at = linear.region.steps.end.max(at + 1);
                continue;
            }
            if let Some(step) = self.program.steps.forward.get(at) {
                self.forward_step(cx, step);
            }
            at += 1;
        }
    }

    fn bind(&self, slot: u32, tensor: Option<Tensor>) {
        let old = self.forward.borrow_mut().replaced(slot, tensor);
        drop(old);
    }

    fn forward_step(self: &Rc<Self>, cx: &Cx, step: &Instruction) {
        match step {
            Instruction::Save { save, value } => {
                if !self.tape.grad_enabled() || !self.pruned.saves(*save) {
                    return;
                }
                let bound = self
                    .forward
                    .borrow()
                    .slots
                    .get(value.slot as usize)
                    .cloned();
                let Some(tensor) = bound.flatten() else {
                    return;
                };
                let saved = Rc::new(tensor.save());
                self.keep(*save, Kept::Here(saved));
            }
            Instruction::Unsave(save) => self.keep(*save, Kept::None),
            Instruction::Unpack { slot, save } => {
                let kept = self.forward.borrow().saves.get(*save as usize).cloned();
                let saved = match kept {
                    Some(Kept::Here(saved)) => Some(saved),
                    Some(Kept::There(saved)) => saved.upgrade(),
                    _ => None,
                };
                self.bind(*slot, saved.map(|saved| saved.unpack()));
            }
            Instruction::Node(node) => self.make_node(*node),
            Instruction::Batch(value) => {
                let part = self.forward.borrow_mut().batch.pop_front();
                self.bind(value.slot, part);
            }
            Instruction::Call { made, .. } => {
                for (value, result) in made.iter().zip(self.call(step)) {
                    self.bind(value.slot, Some(result));
                }
            }
            Instruction::Given { leaf, gradient } => self.give(cx, *leaf, gradient.slot),
            Instruction::Output(value) => {
                let looks = self.types.get(*value);
                let mut forward = self.forward.borrow_mut();
                let bound = forward.at(value.slot);
                let seen = bound.map(|tensor| tensor.with_layout(looks.layout, false));
                forward
                    .outputs
                    .extend(seen.filter(|_| cx.env.training.keep_outputs));
            }
            Instruction::Free(slot) => {
                let given = self.forward.borrow_mut().given.remove(slot);
                if let Some(param) = given {
                    // `zero_grad()` within the loss.
                    drop(param.grad.take());
                }
                self.bind(*slot, None);
            }
        }
    }

    fn keep(&self, save: u32, kept: Kept) {
        let mut forward = self.forward.borrow_mut();
        let place = forward.saves.get_mut(save as usize);
        let old = place.map(|place| std::mem::replace(place, kept));
        drop(forward);
        drop(old);
    }

    /// The results of a call.
    fn call(&self, step: &Instruction) -> Vec<Tensor> {
        let Instruction::Call {
            call,
            scope,
            inputs,
            made,
        } = step
        else {
            return Vec::new();
        };
        if let Some(scope) = self.scopes.get(*scope as usize) {
            self.tape.enter(*scope);
        }
        let Some(call) = self.pruned.call(&self.program, *call) else {
            return Vec::new();
        };
        let (inputs, made) = (self.types.all(inputs), self.types.all(made));
        self.tape.recorded(call, &inputs, &made)
    }
}
