//! Replaying a program on the tape.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::super::{Cx, Output};
use super::program::{Declared, Edge, Lies, Node, Program, Role, Step, Type, Value};
use crate::tape::ops::Operand;
use crate::tape::{
    Category, DType, Dims, GradientEdge, Grads, GraphNode, Layout, Param, Saved, Scope, Tape,
    Tensor,
};

/// A tensor of the model.
#[derive(Clone)]
pub(super) enum Held {
    Param(Rc<Param>),
    Buffer(Tensor),
}

impl Held {
    fn tensor(&self) -> Tensor {
        match self {
            Self::Param(param) => param.tensor(),
            Self::Buffer(buffer) => buffer.clone(),
        }
    }
}

/// Makes a parameter or a buffer in its module.
pub(super) fn declare(cx: &Cx, modules: &[String], declared: &Declared) -> Held {
    if let Some((first, rest)) = modules.split_first() {
        return cx.module_named(first, |cx| declare(cx, rest, declared));
    }
    let Some(name) = KNOWN.iter().find(|known| **known == declared.name) else {
        return cx.module_named(&declared.name, |cx| made(cx, "data", declared));
    };
    made(cx, name, declared)
}

/// Names of parameters that stand in paths as they are; others are told as modules of one.
const KNOWN: &[&str] = &[
    "weight",
    "bias",
    "in_proj_weight",
    "in_proj_bias",
    "running_mean",
    "running_var",
    "num_batches_tracked",
    "gamma",
    "inv_freq",
    "position_ids",
    "weight_ih",
    "weight_hh",
    "bias_ih",
    "bias_hh",
];

fn made(cx: &Cx, name: &'static str, declared: &Declared) -> Held {
    let shape = dims(&declared.shape);
    let dtype = weight_type(cx, declared);
    match declared.role {
        Role::Buffer => Held::Buffer(cx.buffer(name, shape, dtype)),
        Role::Frozen => Held::Param(cx.freezing().param_of(name, shape, dtype)),
        Role::Trained => Held::Param(cx.param_of(name, shape, dtype)),
    }
}

/// The type that a recorded floating parameter has in this run.
fn weight_type(cx: &Cx, declared: &Declared) -> DType {
    let lowers = matches!(cx.env.weights, DType::BF16 | DType::F16);
    match declared.dtype {
        dtype if dtype.is_floating() && lowers => cx.env.weights,
        DType::F32 if declared.role != Role::Buffer => cx.env.weights,
        dtype => dtype,
    }
}

/// A shape; one of more dimensions than the tape knows as the number of its elements.
fn dims(sizes: &[u64]) -> Dims {
    let all = Dims::new(sizes);
    if all.len() == sizes.len() {
        all
    } else {
        Dims::new(&[sizes.iter().fold(1, |all: u64, n| all.saturating_mul(*n))])
    }
}

/// The types of a program at one batch and length.
pub(super) struct Types(Vec<Operand>);

impl Types {
    /// For a batch of so many samples, each so long.
    pub fn at(program: &Program, (b, s): (u64, u64)) -> Self {
        Self(program.types.iter().map(|of| operand(of, b, s)).collect())
    }

    pub fn get(&self, value: Value) -> Operand {
        let none = || Operand {
            layout: Layout::contiguous([0]),
            dtype: DType::U8,
            bytes: 0,
        };
        self.0
            .get(value.looks as usize)
            .copied()
            .unwrap_or_else(none)
    }

    fn all(&self, values: &[Value]) -> Vec<Operand> {
        values.iter().map(|value| self.get(*value)).collect()
    }
}

fn operand(of: &Type, b: u64, s: u64) -> Operand {
    let sizes: Vec<u64> = of.shape.iter().map(|size| size.at(b, s)).collect();
    let shape = dims(&sizes);
    let layout = match &of.lies {
        _ if shape.len() != sizes.len() => Layout::contiguous(shape),
        Lies::RowMajor => Layout::contiguous(shape),
        Lies::Ordered(order) => {
            let mut strides = shape;
            let mut step: u64 = 1;
            for &place in order.iter().rev() {
                strides = strides.with(place, step);
                step = step.saturating_mul(shape.get(place).copied().unwrap_or(1).max(1));
            }
            Layout { shape, strides }
        }
        Lies::Strides(strides) => {
            let strides: Vec<u64> = strides.iter().map(|stride| stride.at(b, s)).collect();
            Layout {
                shape,
                strides: Dims::new(&strides),
            }
        }
    };
    let bytes = match &of.bytes {
        Some(size) => size.at(b, s),
        None => layout.numel().saturating_mul(of.dtype.bytes()),
    };
    Operand {
        layout,
        dtype: of.dtype,
        bytes,
    }
}

/// A program while it runs: what Python's names and backward's functions hold.
pub(super) struct Replay {
    tape: Tape,
    program: Rc<Program>,
    types: Types,
    scopes: Vec<Scope>,
    slots: RefCell<Vec<Option<Tensor>>>,
}

/// What forward keeps at hand besides tensors.
struct Forward {
    saves: Vec<Kept>,
    nodes: Vec<Option<GraphNode>>,
    leaves: Vec<(u32, GradientEdge)>,
}

/// A saved tensor: at hand, or a node's.
enum Kept {
    None,
    Here(Rc<Saved>),
    There(Weak<Saved>),
}

impl Replay {
    pub fn run(
        cx: &Cx,
        program: &Rc<Program>,
        sizes: (u64, u64),
        params: Vec<(u32, Held)>,
        batch: &[Tensor],
    ) -> Output {
        let tape = cx.tape.clone();
        let outer = tape.scope();
        let scopes = program.scopes.iter().map(|path| {
            path.iter()
                .fold(outer, |scope, name| tape.named_scope_in(scope, name))
        });
        let replay = Rc::new(Self {
            types: Types::at(program, sizes),
            scopes: scopes.collect(),
            slots: RefCell::new(vec![None; program.steps.slots]),
            program: program.clone(),
            tape,
        });
        let mut forward = Forward {
            saves: (0..program.steps.saves).map(|_| Kept::None).collect(),
            nodes: vec![None; program.steps.nodes.len()],
            leaves: Vec::new(),
        };
        for (slot, held) in &params {
            let tensor = held.tensor();
            if let Some(edge) = tensor.gradient_edge() {
                forward.leaves.push((*slot, edge));
            }
            replay.bind(*slot, Some(tensor.detach()));
        }
        let mut batch = batch.iter();
        for step in &program.steps.forward {
            replay.forward_step(step, &mut forward, &mut batch);
        }
        replay.tape.enter(outer);
        // What neither a node nor a name holds goes now; what a name still holds goes with the graph.
        for (slot, _) in &params {
            replay.bind(*slot, None);
        }
        let (value, node) = program.steps.loss;
        let edge = forward
            .nodes
            .get(node as usize)
            .cloned()
            .flatten()
            .map(|node| node.edge(0));
        let loss = replay
            .slots
            .borrow_mut()
            .get_mut(value.slot as usize)
            .and_then(Option::take);
        let loss = loss.unwrap_or_else(|| Output::empty(cx).loss);
        Output {
            loss: loss.with_gradient_edge(edge),
            held: Vec::new(),
        }
    }

    fn bind(&self, slot: u32, tensor: Option<Tensor>) {
        let old = self
            .slots
            .borrow_mut()
            .get_mut(slot as usize)
            .and_then(|place| std::mem::replace(place, tensor));
        drop(old);
    }

    fn bound(&self, slot: u32) -> Option<Tensor> {
        self.slots.borrow().get(slot as usize).cloned().flatten()
    }

    fn forward_step(
        self: &Rc<Self>,
        step: &Step,
        forward: &mut Forward,
        batch: &mut std::slice::Iter<Tensor>,
    ) {
        match step {
            Step::Save { save, value } => {
                if !self.tape.grad_enabled() {
                    return;
                }
                let Some(tensor) = self.bound(value.slot) else {
                    return;
                };
                let saved = Rc::new(tensor.save());
                if let Some(place) = forward.saves.get_mut(*save as usize) {
                    *place = Kept::Here(saved);
                }
            }
            Step::Unsave(save) => {
                if let Some(place) = forward.saves.get_mut(*save as usize) {
                    *place = Kept::None;
                }
            }
            Step::Unpack { slot, save } => {
                let saved = match forward.saves.get(*save as usize) {
                    Some(Kept::Here(saved)) => Some(saved.clone()),
                    Some(Kept::There(saved)) => saved.upgrade(),
                    _ => None,
                };
                self.bind(*slot, saved.map(|saved| saved.unpack()));
            }
            Step::Node(node) => self.make_node(*node, forward),
            Step::Batch(value) => self.bind(value.slot, batch.next().cloned()),
            step => self.step(step),
        }
    }

    /// A step of forward or of a backward function.
    fn step(&self, step: &Step) {
        match step {
            Step::Call {
                call,
                scope,
                given,
                made,
            } => {
                if let Some(scope) = self.scopes.get(*scope as usize) {
                    self.tape.enter(*scope);
                }
                let Some(call) = self.program.calls.get(*call as usize) else {
                    return;
                };
                let results =
                    self.tape
                        .recorded(call, &self.types.all(given), &self.types.all(made));
                for (value, result) in made.iter().zip(results) {
                    self.bind(value.slot, Some(result));
                }
            }
            Step::Free(slot) => self.bind(*slot, None),
            _ => {}
        }
    }

    fn make_node(self: &Rc<Self>, number: u32, forward: &mut Forward) {
        let Some(node) = self.program.steps.nodes.get(number as usize) else {
            return;
        };
        let edges = node.edges.iter().map(|edge| match edge {
            Edge::None => None,
            Edge::Leaf(slot) => forward
                .leaves
                .iter()
                .find(|(leaf, _)| leaf == slot)
                .map(|(_, edge)| edge.clone()),
            Edge::Node { node, output } => {
                let node = forward.nodes.get(*node as usize)?.as_ref()?;
                Some(node.edge(*output))
            }
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
        let replay = self.clone();
        let made = self.tape.graph_node(edges, || {
            Box::new(move |incoming| replay.backward(number, incoming, saves))
        });
        if let Some(place) = forward.nodes.get_mut(number as usize) {
            *place = made;
        }
    }

    /// What a node does with its incoming gradients, which live until it has returned.
    fn backward(&self, number: u32, incoming: Grads, saves: Vec<(u32, Rc<Saved>)>) -> Grads {
        let Some(node) = self.program.steps.nodes.get(number as usize) else {
            return Grads::new();
        };
        for step in &node.steps {
            match step {
                Step::Unpack { slot, save } => {
                    let saved = saves.iter().find(|(known, _)| known == save);
                    self.bind(*slot, saved.map(|(_, saved)| saved.unpack()));
                }
                step => self.step(step),
            }
        }
        let outgoing = node.outgoing.iter().map(|gradient| {
            let gradient = gradient.as_ref()?;
            Some(self.outgoing(node, gradient.value, gradient.view, &incoming))
        });
        let outgoing: Grads = outgoing.collect();
        for gradient in node.outgoing.iter().flatten() {
            self.bind(gradient.value.slot, None);
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
        match self.bound(value.slot).or(passed) {
            Some(tensor) if *tensor.layout() == looks.layout && !view => tensor,
            Some(tensor) => tensor.seen_as(looks.layout, view),
            None => {
                let fresh = self.tape.empty_as("recorded", looks.layout, looks.dtype);
                fresh.set_category(Category::BackwardTemporaries);
                fresh
            }
        }
    }
}
