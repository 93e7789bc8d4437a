//! Replaying a program on the tape.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Mutex;

use super::super::{Cx, Output};
use super::plan::{Layer, Linear, Plan};
use super::program::{Declared, Edge, Graph, Lies, Node, Program, Role, Step, Type, Value};
use super::prune::Pruned;
use super::region::{self, Region};
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

    fn trains(&self) -> bool {
        matches!(self, Self::Param(param) if param.trainable)
    }
}

/// A parameter or a buffer, made at its first use.
pub(super) fn held(cx: &Cx, declared: &Declared) -> Held {
    declare(&cx.root(), &declared.modules, declared)
}

/// Runs a linear module, with the adapter and the quantised weight that the run asks for.
pub(super) fn linear_module(cx: &Cx, declared: &Declared, linear: &Linear, x: &Tensor) -> Tensor {
    fn inside(cx: &Cx, modules: &[String], linear: &Linear, out: u64, x: &Tensor) -> Tensor {
        match modules {
            [] => x.clone(),
            [name] if linear.turned => cx.conv1d(known_name(name), x, out),
            [name] => cx.linear(known_name(name), x, out, linear.bias),
            [first, rest @ ..] => cx.module_named(first, |cx| inside(cx, rest, linear, out, x)),
        }
    }
    let out = declared.shape.get(usize::from(linear.turned));
    let out = out.copied().unwrap_or(1);
    inside(&cx.root(), &declared.modules, linear, out, x)
}

/// A module's name for as long as the program runs: adapters ask for modules by their names, of which there are few.
fn known_name(name: &str) -> &'static str {
    const MOST: usize = 1024;
    const LONGEST: usize = 64;
    static ALL: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let Ok(mut all) = ALL.lock() else {
        return "linear";
    };
    if let Some(found) = all.get(name) {
        return found;
    }
    if all.len() >= MOST || name.len() > LONGEST {
        return "linear";
    }
    let kept: &'static str = Box::leak(name.into());
    all.insert(kept);
    kept
}

/// Makes a parameter or a buffer in its module.
fn declare(cx: &Cx, modules: &[String], declared: &Declared) -> Held {
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

/// What Python's names hold in forward, and the graph so far.
#[derive(Default)]
struct Forward {
    slots: Vec<Option<Tensor>>,
    saves: Vec<Kept>,
    nodes: Vec<Option<GraphNode>>,
    leaves: BTreeMap<u32, GradientEdge>,
    /// Where gradients go that leave a module which a wrapper stands around.
    edges: BTreeMap<region::Output, GradientEdge>,
    batch: VecDeque<Tensor>,
}

/// A saved tensor: at hand, or a node's.
#[derive(Clone, Default)]
enum Kept {
    #[default]
    None,
    Here(Rc<Saved>),
    There(Weak<Saved>),
}

/// What is replayed: a program at a batch and length, and what is known of it.
pub(super) struct Replayed {
    pub graph: Rc<Graph>,
    pub program: Rc<Program>,
    pub plan: Rc<Plan>,
    pub sizes: (u64, u64),
    pub by_module: bool,
    pub by_layer: bool,
}

impl Replay {
    pub fn run(cx: &Cx, replayed: Replayed, batch: &[Tensor]) -> Output {
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
        let scopes = program.scopes.iter().map(|path| {
            path.iter()
                .fold(outer, |scope, name| tape.named_scope_in(scope, name))
        });
        let mut replay = Self {
            types: Types::at(&program, sizes),
            scopes: scopes.collect(),
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
        replay.steps(cx, all, by_layer);
        replay.tape.enter(outer);
        replay.output(cx)
    }

    /// What forward returns. What neither a node nor a name holds goes now; what a name still holds goes with the graph.
    fn output(&self, cx: &Cx) -> Output {
        let (value, node) = self.program.steps.loss;
        let mut forward = std::mem::take(&mut *self.forward.borrow_mut());
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
        let loss = loss.unwrap_or_else(|| Output::empty(cx).loss);
        Output {
            loss: loss.with_gradient_edge(edge),
            held: Vec::new(),
        }
    }

    /// Leaves out what nobody wants a gradient of, where less is trained than was recorded.
    fn prune(&mut self, cx: &Cx) {
        let params = self.graph.params.iter();
        let trained = |declared: &Declared| {
            let of_module = self.by_module && self.plan.holds(declared.slot);
            !of_module && held(cx, declared).trains()
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
        let mut note = |slot: u32| {
            if let Some(place) = by_slot.get(&slot)
                && !found.contains(place)
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
                Some(Step::Call { given, .. }) => given.iter().for_each(|value| note(value.slot)),
                Some(Step::Save { value, .. }) => note(value.slot),
                Some(Step::Node(node)) => {
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
                self.forward_step(step);
            }
            at += 1;
        }
    }

    /// An item of a list of layers: what stands around layers sees its inputs and outputs.
    fn layer(self: &Rc<Self>, cx: &Cx, layer: &Layer) {
        let given = self.given(&layer.region);
        let replay = self.clone();
        let place = layer.region.steps.start;
        let body = move |cx: &Cx, given: &[Tensor]| match replay.plan.layer_at(place) {
            Some(layer) => replay.inside(cx, &layer.region, given),
            None => Vec::new(),
        };
        let made = cx
            .root()
            .layer_at(&layer.path, layer.index, given, Rc::new(body));
        let mut forward = self.forward.borrow_mut();
        let outputs = made.iter();
        for ((output, place), tensor) in layer.region.after.iter().zip(outputs.clone()) {
            if let Some(edge) = tensor.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
            let value = layer.region.outputs.get(*place);
            forward.bind_to(value, tensor.detach());
        }
        let rest = outputs.skip(layer.region.after.len());
        for (value, tensor) in layer.region.outputs.iter().zip(rest) {
            if forward.lacks(value.slot) {
                forward.bind_to(Some(value), tensor.detach());
            }
        }
        let gone: Vec<Option<Tensor>> = layer
            .region
            .freed
            .iter()
            .map(|slot| forward.replaced(*slot, None))
            .collect();
        drop(forward);
        drop(gone);
    }

    /// The inputs of a region: one for each gradient, then each piece of memory.
    fn given(&self, region: &Region) -> Vec<Tensor> {
        let forward = self.forward.borrow();
        let seen = |value: &Value| {
            let layout = self.types.get(*value).layout;
            forward
                .at(value.slot)
                .map(|tensor| tensor.seen_as(layout, false))
        };
        self.passed(&forward, &region.before, &region.inputs, &seen)
    }

    /// Tensors that go over a region's border: one for each gradient that comes back, then each piece of memory.
    fn passed(
        &self,
        forward: &Forward,
        gradients: &[(region::Output, usize)],
        values: &[Value],
        find: &dyn Fn(&Value) -> Option<Tensor>,
    ) -> Vec<Tensor> {
        let nothing = || self.tape.empty("recorded", [0; 0], DType::U8);
        let with_gradients = gradients.iter().map(|(output, place)| {
            let found = values.get(*place).and_then(find).unwrap_or_else(nothing);
            found.with_gradient_edge(forward.edge(*output))
        });
        let rest = values
            .iter()
            .map(|value| find(value).unwrap_or_else(nothing));
        with_gradients.chain(rest).collect()
    }

    /// Runs a region by itself, on names of its own.
    fn inside(self: &Rc<Self>, cx: &Cx, region: &Region, given: &[Tensor]) -> Vec<Tensor> {
        let used = self.used(&region.steps, false);
        let params: Vec<u32> = used
            .iter()
            .filter_map(|place| self.graph.params.get(*place))
            .map(|declared| declared.slot)
            .collect();
        let inputs: Vec<u32> = region.inputs.iter().map(|value| value.slot).collect();
        let own = [params, inputs, region.made.clone()].concat();
        let mut forward = self.forward.borrow_mut();
        forward.grow(&self.program);
        let before: Vec<(u32, Option<Tensor>)> = own
            .iter()
            .map(|slot| (*slot, forward.replaced(*slot, None)))
            .collect();
        let shared = given.len().saturating_sub(region.inputs.len());
        let outside = std::mem::take(&mut forward.edges);
        for ((output, _), tensor) in region.before.iter().zip(given) {
            if let Some(edge) = tensor.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
        }
        for (value, tensor) in region.inputs.iter().zip(given.iter().skip(shared)) {
            forward.bind_to(Some(value), tensor.detach());
        }
        drop(forward);
        self.bind_params(cx, &used);
        self.steps(cx, region.steps.clone(), false);
        let mut forward = self.forward.borrow_mut();
        let made = |value: &Value| forward.at(value.slot);
        let outputs = self.passed(&forward, &region.after, &region.outputs, &made);
        // What is run again in backward leaves nothing behind.
        let inside = std::mem::replace(&mut forward.edges, outside);
        let mut gone: Vec<Option<Tensor>> = Vec::with_capacity(before.len());
        for (slot, tensor) in before {
            gone.push(forward.replaced(slot, tensor));
        }
        let nodes = region.nodes.iter();
        let nodes: Vec<_> = nodes
            .map(|node| forward.nodes.get_mut(*node as usize)?.take())
            .collect();
        for save in &region.saves {
            if let Some(place) = forward.saves.get_mut(*save as usize) {
                *place = Kept::None;
            }
        }
        drop(forward);
        drop((gone, nodes, inside));
        outputs
    }

    /// A linear module by the tape's own rules.
    fn linear(self: &Rc<Self>, cx: &Cx, linear: &Linear) {
        let Some(declared) = self.graph.params.get(linear.param) else {
            return;
        };
        let given = self.given(&linear.region);
        let Some(x) = given.first().cloned() else {
            return;
        };
        drop(given);
        let y = linear_module(cx, declared, linear, &x);
        drop(x);
        let mut forward = self.forward.borrow_mut();
        for (output, _) in &linear.region.after {
            if let Some(edge) = y.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
        }
        forward.bind_to(Some(&linear.output), y.detach());
    }

    fn bind(&self, slot: u32, tensor: Option<Tensor>) {
        let old = self.forward.borrow_mut().replaced(slot, tensor);
        drop(old);
    }

    fn forward_step(self: &Rc<Self>, step: &Step) {
        match step {
            Step::Save { save, value } => {
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
            Step::Unsave(save) => self.keep(*save, Kept::None),
            Step::Unpack { slot, save } => {
                let kept = self.forward.borrow().saves.get(*save as usize).cloned();
                let saved = match kept {
                    Some(Kept::Here(saved)) => Some(saved),
                    Some(Kept::There(saved)) => saved.upgrade(),
                    _ => None,
                };
                self.bind(*slot, saved.map(|saved| saved.unpack()));
            }
            Step::Node(node) => self.make_node(*node),
            Step::Batch(value) => {
                let part = self.forward.borrow_mut().batch.pop_front();
                self.bind(value.slot, part);
            }
            Step::Call { made, .. } => {
                for (value, result) in made.iter().zip(self.call(step)) {
                    self.bind(value.slot, Some(result));
                }
            }
            Step::Free(slot) => self.bind(*slot, None),
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
    fn call(&self, step: &Step) -> Vec<Tensor> {
        let Step::Call {
            call,
            scope,
            given,
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
        let (given, made) = (self.types.all(given), self.types.all(made));
        self.tape.recorded(call, &given, &made)
    }

    fn make_node(self: &Rc<Self>, number: u32) {
        let Some(node) = self.pruned.node(&self.program, number) else {
            return;
        };
        let mut forward = self.forward.borrow_mut();
        let edges = node.edges.iter().map(|edge| match edge {
            Edge::None => None,
            Edge::Leaf(slot) => forward.leaves.get(slot).cloned(),
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
        let made = self.tape.graph_node(edges, || {
            Box::new(move |incoming| replay.backward(number, incoming, saves))
        });
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
                Step::Unpack { slot, save } => {
                    let saved = saves.iter().find(|(known, _)| known == save);
                    hold(*slot, saved.map(|(_, saved)| saved.unpack()));
                }
                Step::Call { made, .. } => {
                    for (value, result) in made.iter().zip(self.call(step)) {
                        hold(value.slot, Some(result));
                    }
                }
                Step::Free(slot) => hold(*slot, None),
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
            Some(tensor) => tensor.seen_as(looks.layout, view),
            None => {
                let fresh = self.tape.empty_as("recorded", looks.layout, looks.dtype);
                fresh.set_category(Category::BackwardTemporaries);
                fresh
            }
        }
    }
}

impl Forward {
    fn replaced(&mut self, slot: u32, tensor: Option<Tensor>) -> Option<Tensor> {
        let place = self.slots.get_mut(slot as usize);
        place.and_then(|place| std::mem::replace(place, tensor))
    }

    fn at(&self, slot: u32) -> Option<Tensor> {
        self.slots.get(slot as usize).cloned().flatten()
    }

    fn bind_to(&mut self, value: Option<&Value>, tensor: Tensor) {
        if let Some(value) = value {
            self.replaced(value.slot, Some(tensor));
        }
    }

    fn lacks(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_none_or(Option::is_none)
    }

    /// Where the gradient of a node's output goes.
    fn edge(&self, (node, output): region::Output) -> Option<GradientEdge> {
        if let Some(edge) = self.edges.get(&(node, output)) {
            return Some(edge.clone());
        }
        let node = self.nodes.get(node as usize)?.as_ref()?;
        Some(node.edge(output))
    }

    /// Makes room for the names of a program: they are gone once its forward has returned.
    fn grow(&mut self, program: &Program) {
        if self.slots.len() < program.steps.slots {
            self.slots.resize(program.steps.slots, None);
            self.saves.resize(program.steps.saves, Kept::None);
            self.nodes.resize(program.steps.nodes.len(), None);
        }
    }
}
