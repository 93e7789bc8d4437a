//! `torch.compile`: a region of the program is traced as a graph, what it saves for backward is the smallest cut of that graph
//! (`cut`), and chains of element-wise operations become one kernel, so that what lies between them never has memory.
//!
//! The region runs twice. First it is traced: operations only note what they read and make. Then it runs with the cut known:
//! a value that a generated kernel makes is *put off* until a kernel that is not generated reads it, and holds what it is
//! computed from until then. Inductor writes such a value over an input of the same size that nothing else needs
//! (`buf = input; del input  # reuse` in its code).

mod budget;
mod cut;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::layout::Shared;
use super::{
    Backward, Category, Core, DType, Event, GradientEdge, Grads, Layout, Stream, Tape, Tensor,
    borrowing, grads,
};
use cut::Value;

/// What stands for a node of a compiled region's backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tape) enum Compiled {
    /// It is not compiled.
    #[default]
    Not,
    /// A generated kernel runs it, together with its neighbours.
    Fused,
    /// A kernel of a library runs it.
    External,
}

/// Keeps a storage alive.
pub(in crate::tape) struct Held {
    core: Rc<Core>,
    /// None before backward has made it.
    storage: Cell<Option<u32>>,
}

impl Held {
    fn of(core: &Rc<Core>, storage: u32) -> Rc<Self> {
        core.hold(Some(storage));
        Rc::new(Self {
            core: core.clone(),
            storage: Cell::new(Some(storage)),
        })
    }

    /// Of a value that backward will make.
    fn later(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(Self {
            core: core.clone(),
            storage: Cell::new(None),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.core.release(self.storage.get());
    }
}

/// What values that are put off are computed from, by their storages.
pub(in crate::tape) type PutOff = BTreeMap<u32, Vec<Rc<Held>>>;

/// The region that runs.
#[derive(Default)]
pub(in crate::tape) struct Region {
    /// How many storages it has made so far.
    made: usize,
    /// How many tensors it has saved.
    saved: usize,
    /// Storages made since the last operation was complete.
    open: Vec<Made>,
    /// What the operation under way reads.
    reads: Vec<u32>,
    /// A library's kernel runs the operation under way.
    external: bool,
    /// The next storage is of a generated kernel.
    generated: bool,
    run: Pass,
    /// Of the graphs before a break.
    traced: Vec<Plan>,
    /// The latest casts: equal ones are one (`fx_graph_cse`).
    casts: VecDeque<(u32, Tensor)>,
    /// The storages of kept values.
    kept_storages: BTreeMap<usize, u32>,
    /// The work of the operation under way.
    flops: f64,
    /// The share of what the cut for speed keeps that may be kept.
    budget: f64,
}

#[derive(Clone, Copy)]
struct Made {
    storage: u32,
    ordinal: usize,
    bytes: u64,
    op: &'static str,
}

enum Pass {
    Trace(Graph),
    Run {
        plan: Rc<Plan>,
        /// Of the graphs after a break.
        next: VecDeque<Rc<Plan>>,
        /// The kept values so far, by their ordinals.
        live: BTreeMap<usize, Rc<Held>>,
        /// Nothing is kept: backward makes all of it again, first of all.
        again: bool,
    },
}

impl Default for Pass {
    fn default() -> Self {
        Self::Trace(Graph::default())
    }
}

/// The graph of a region as it is traced.
#[derive(Default)]
struct Graph {
    values: Vec<Value>,
    /// The place of each storage's value.
    places: BTreeMap<u32, usize>,
    /// The ordinals of values that the region makes.
    ordinals: BTreeMap<usize, usize>,
    /// What was saved, in order.
    saves: Vec<u32>,
    /// How many operations there were.
    operations: usize,
}

/// What a region keeps.
struct Plan {
    /// Whether a storage is kept, by the order in which they are made.
    kept: Vec<bool>,
    /// What each saved tensor is computed from.
    sources: Vec<Vec<Origin>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Made(usize),
    Outside(u32),
}

/// Operations whose results are not computed again, though they are fused (they are missing in `default_recomputable_ops`).
const KEPT_OPS: [&str; 6] = [
    "embedding",
    "dropout_mask",
    "bernoulli",
    "max_pool2d",
    "cat",
    "inputs",
];

/// Those of chance.
const RANDOM_OPS: [&str; 2] = ["dropout_mask", "bernoulli"];

/// Numbers of generated operations, each of which makes one value, are beyond those of a library's.
const GENERATED_FROM: usize = 1 << 24;

/// Operations that Inductor generates, besides those that announce themselves; all others are taken for a library's.
const GENERATED: [&str; 22] = [
    "arange",
    "avg_pool2d",
    "batch_norm",
    "bernoulli",
    "cat",
    "contiguous",
    "dropout_mask",
    "embedding",
    "group_norm",
    "layer_norm",
    "max_pool2d",
    "mul",
    "new_zeros",
    "nll_loss",
    "pad",
    "repeat",
    "rms_norm",
    "scalar_tensor",
    "stack",
    "to",
    "zeros",
    "zeros_like",
];

impl Graph {
    fn place(&mut self, core: &Core, storage: u32) -> usize {
        if let Some(&place) = self.places.get(&storage) {
            return place;
        }
        let bytes = core.bytes_of(storage);
        self.values.push(Value {
            bytes,
            outside: true,
            ..Value::default()
        });
        let place = self.values.len() - 1;
        self.places.insert(storage, place);
        place
    }

    /// An operation is complete: reductions first, which its larger results are computed from.
    fn complete(
        &mut self,
        core: &Core,
        made: &[Made],
        reads: &[u32],
        (external, flops): (bool, f64),
    ) {
        self.operations += 1;
        let operation = self.operations;
        let again = core.checkpoints();
        let inputs: Vec<usize> = reads.iter().map(|&read| self.place(core, read)).collect();
        let largest = made.iter().map(|made| made.bytes).max().unwrap_or(0);
        let (small, large): (Vec<&Made>, Vec<&Made>) = made
            .iter()
            .partition(|made| made.bytes.saturating_mul(4) < largest);
        let mut reductions = Vec::new();
        for (made, is_small) in small
            .iter()
            .map(|made| (made, true))
            .chain(large.iter().map(|made| (made, false)))
        {
            let mut inputs = inputs.clone();
            if is_small {
                reductions.push(self.values.len());
            } else if !external {
                inputs.extend(&reductions);
            }
            self.ordinals.insert(made.ordinal, self.values.len());
            self.places.insert(made.storage, self.values.len());
            self.values.push(Value {
                bytes: made.bytes,
                inputs,
                again,
                recomputable: !external && !KEPT_OPS.contains(&made.op),
                heavy: external || RANDOM_OPS.contains(&made.op),
                // Values of one kernel of a library go together; a generated one can be divided.
                operation: if external {
                    operation
                } else {
                    GENERATED_FROM + self.values.len()
                },
                flops,
                ..Value::default()
            });
        }
    }

    fn plan(self, core: &Core, made: usize, budget: f64) -> Plan {
        let cut = core.cut(&self.values, budget);
        let is_kept = |place: usize| cut.get(place).copied().unwrap_or(false);
        let mut kept = vec![false; made];
        let mut origins: Vec<Option<Origin>> = vec![None; self.values.len()];
        for (&storage, &place) in &self.places {
            if let (Some(value), Some(origin)) = (self.values.get(place), origins.get_mut(place))
                && value.outside
            {
                *origin = Some(Origin::Outside(storage));
            }
        }
        for (&ordinal, &place) in &self.ordinals {
            if is_kept(place) {
                if let Some(kept) = kept.get_mut(ordinal) {
                    *kept = true;
                }
                if let Some(origin) = origins.get_mut(place) {
                    *origin = Some(Origin::Made(ordinal));
                }
            }
        }
        let mut sources: BTreeMap<u32, Vec<Origin>> = BTreeMap::new();
        let of_saves = self.saves.iter().map(|saved| {
            let place = self.places.get(saved).copied();
            sources
                .entry(*saved)
                .or_insert_with(|| match place {
                    Some(place) => self.origins_of(place, &origins),
                    None => Vec::new(),
                })
                .clone()
        });
        Plan {
            sources: of_saves.collect(),
            kept,
        }
    }

    /// The kept values and inputs that a value is computed from.
    fn origins_of(&self, place: usize, origins: &[Option<Origin>]) -> Vec<Origin> {
        let mut found = std::collections::BTreeSet::new();
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if !seen.insert(place) {
                continue;
            }
            match origins.get(place).copied().flatten() {
                Some(origin) => {
                    found.insert(origin);
                }
                None => open.extend(
                    self.values
                        .get(place)
                        .iter()
                        .flat_map(|value| &value.inputs),
                ),
            }
        }
        found.into_iter().collect()
    }
}

/// The cuts of recent graphs: layers that are alike, and passes, have the same.
#[derive(Default)]
pub(in crate::tape) struct Cuts(VecDeque<Cut>);

/// A graph under a budget, and which of its values are kept.
struct Cut {
    budget: f64,
    values: Rc<[Value]>,
    kept: Rc<[bool]>,
}

/// A tensor saved in a compiled region that backward computes again.
pub(in crate::tape) struct Remade {
    core: Rc<Core>,
    /// Its only source is the value itself.
    itself: bool,
    layout: Rc<Shared>,
    dtype: DType,
    sources: Vec<Rc<Held>>,
}

impl Remade {
    pub fn tensor(&self) -> Tensor {
        self.core.note_sources(&self.sources);
        let only = self.sources.first().and_then(|held| held.storage.get());
        if let Some(storage) = only.filter(|_| self.itself) {
            return Tensor::of_storage(&self.core, &self.layout, storage, self.dtype);
        }
        Tape(self.core.clone()).empty_as("recomputed", self.layout.layout, self.dtype)
    }
}

impl Remade {
    /// The tensor as a value that has no memory until it is read.
    pub fn put_off(&self) -> Tensor {
        let outer = self.core.fused.replace(Some(Vec::new()));
        let tensor = self.tensor();
        let read = self.core.fused.replace(outer);
        drop(read);
        tensor
    }
}

/// What a saved tensor of a compiled region becomes.
pub(in crate::tape) enum Packed {
    AsItIs,
    Remade(Remade),
}

impl Core {
    /// Which values of a graph are kept.
    fn cut(&self, values: &[Value], budget: f64) -> Rc<[bool]> {
        const RECENT: usize = 4;
        /// Larger graphs are of whole models, and are not kept here for their memory.
        const MOST_VALUES: usize = 1 << 14;
        let Cuts(cuts) = &mut *self.cuts.borrow_mut();
        let mut recent = cuts.iter();
        let known =
            recent.find(|cut| cut.budget.to_bits() == budget.to_bits() && *cut.values == *values);
        if let Some(known) = known {
            return known.kept.clone();
        }
        let kept: Rc<[bool]> = budget::kept(values, budget).into();
        if values.len() <= MOST_VALUES {
            cuts.push_back(Cut {
                budget,
                values: values.into(),
                kept: kept.clone(),
            });
            if cuts.len() > RECENT {
                cuts.pop_front();
            }
        }
        kept
    }

    fn bytes_of(&self, storage: u32) -> u64 {
        let trace = self.trace.borrow();
        trace
            .storages
            .get(storage as usize)
            .map_or(0, |storage| storage.bytes)
    }

    /// Whether the storage that is being made has no memory yet.
    pub(in crate::tape) fn puts_off(&self, storage: u32, bytes: u64, op: &'static str) -> bool {
        if let Some(reads) = &*self.fused.borrow() {
            let sources = reads.clone();
            self.put_off_values.borrow_mut().insert(storage, sources);
            return true;
        }
        let mut region = self.region.borrow_mut();
        let Some(region) = region.as_mut() else {
            return false;
        };
        if !std::mem::take(&mut region.generated) && !GENERATED.contains(&op) {
            region.external = true;
        }
        let ordinal = region.made;
        region.made += 1;
        region.open.push(Made {
            storage,
            ordinal,
            bytes,
            op,
        });
        let waits = match &region.run {
            Pass::Trace(_) => true,
            Pass::Run { plan, again, .. } => {
                !region.external && (*again || !plan.kept.get(ordinal).copied().unwrap_or(false))
            }
        };
        if waits {
            self.put_off_values.borrow_mut().insert(storage, Vec::new());
        }
        waits
    }

    /// A kernel of the operation under way does so much.
    pub(in crate::tape) fn works(&self, flops: f64) {
        if let Some(region) = &mut *self.region.borrow_mut() {
            region.flops += flops;
        }
    }

    /// The storage made next is that of an element-wise kernel or a reduction.
    pub(in crate::tape) fn generates(&self) {
        if let Some(region) = &mut *self.region.borrow_mut() {
            region.generated = true;
        }
    }

    /// The last holder of a storage is gone: whether it never had memory.
    pub(in crate::tape) fn never_made(&self, storage: u32) -> bool {
        let sources = self.put_off_values.borrow_mut().remove(&storage);
        sources.is_some()
    }

    fn held(self: &Rc<Self>, made: &Made, again: bool) -> Rc<Held> {
        if again {
            Held::later(self)
        } else {
            Held::of(self, made.storage)
        }
    }

    /// What a value is computed from, where it has no memory, or itself.
    fn sources_of(self: &Rc<Self>, storage: u32) -> Vec<Rc<Held>> {
        let put_off = self.put_off_values.borrow().get(&storage).cloned();
        put_off.unwrap_or_else(|| vec![Held::of(self, storage)])
    }

    /// A fused kernel reads these.
    pub(in crate::tape) fn note_sources(&self, sources: &[Rc<Held>]) {
        if let Some(reads) = &mut *self.fused.borrow_mut() {
            reads.extend(sources.iter().cloned());
        }
    }

    /// A fused kernel reads a tensor.
    pub(in crate::tape) fn note_read(self: &Rc<Self>, tensor: &Tensor) {
        let Some(storage) = tensor.storage_id() else {
            return;
        };
        if self.fused.borrow().is_some() {
            let sources = self.sources_of(storage);
            self.note_sources(&sources);
        }
    }

    /// Gives a value memory that was put off.
    fn realise(self: &Rc<Self>, storage: u32) {
        if matches!(
            self.region.borrow().as_ref().map(|region| &region.run),
            Some(Pass::Trace(_))
        ) {
            return;
        }
        let Some(mut sources) = self.put_off_values.borrow_mut().remove(&storage) else {
            return;
        };
        let bytes = self.bytes_of(storage);
        let free = |source: &Rc<Held>| {
            let trace = self.trace.borrow();
            let Some(storage) = source.storage.get() else {
                return false;
            };
            let of = trace.storages.get(storage as usize);
            Rc::strong_count(source) == 1
                && !self.leaving.borrow().contains(&storage)
                && of.is_some_and(|of| of.holders == 1 && of.bytes == bytes)
        };
        if let Some(place) = sources.iter().position(free) {
            drop(sources.swap_remove(place));
        }
        let mut trace = self.trace.borrow_mut();
        trace.record(Event::alloc(storage), false);
        drop(trace);
        self.tune();
        drop(sources);
    }

    /// Inductor times a kernel in the first step, each time after it has swept the level-2 cache (`InductorBenchmarker` in
    /// torch/_inductor/runtime/benchmarking.py).
    fn tune(self: &Rc<Self>) {
        let first = self.machine.tunes && self.step.get() == 0;
        if first && self.region.borrow().is_none() {
            let tape = Tape(self.clone());
            tape.apart(|| tape.workspace("benchmark", self.machine.level2_cache()));
        }
    }

    /// The operation under way reads these; returns whether a library's kernel runs it.
    pub(in crate::tape) fn begin_operation(self: &Rc<Self>, inputs: &[&Tensor]) -> Compiled {
        let mut region = self.region.borrow_mut();
        let Some(region) = region.as_mut() else {
            return Compiled::Not;
        };
        region.reads.clear();
        let storages = inputs.iter().filter_map(|input| input.storage_id());
        region.reads.extend(storages);
        if region.external {
            Compiled::External
        } else {
            Compiled::Fused
        }
    }

    pub(in crate::tape) fn end_operation(self: &Rc<Self>) {
        let mut taken = self.region.borrow_mut();
        let Some(region) = taken.as_mut() else {
            return;
        };
        let made = std::mem::take(&mut region.open);
        let reads = std::mem::take(&mut region.reads);
        let external = std::mem::take(&mut region.external);
        let flops = std::mem::take(&mut region.flops);
        match &mut region.run {
            Pass::Trace(graph) => graph.complete(self, &made, &reads, (external, flops)),
            Pass::Run {
                plan, live, again, ..
            } => {
                for made in &made {
                    if plan.kept.get(made.ordinal) == Some(&true) {
                        region.kept_storages.insert(made.ordinal, made.storage);
                        live.entry(made.ordinal)
                            .or_insert_with(|| self.held(made, *again));
                    }
                }
                drop(taken);
                self.computed_from(&made, &reads);
            }
        }
    }

    /// Values that are put off hold what they are computed from.
    fn computed_from(self: &Rc<Self>, made: &[Made], reads: &[u32]) {
        let own = |read: &u32| made.iter().any(|made| made.storage == *read);
        let sources: Vec<Rc<Held>> = reads
            .iter()
            .filter(|read| !own(read))
            .flat_map(|&read| self.sources_of(read))
            .collect();
        for made in made {
            if let Some(of) = self.put_off_values.borrow_mut().get_mut(&made.storage) {
                of.extend(sources.iter().cloned());
            }
        }
    }

    /// An element-wise kernel makes one value of others, perhaps outside of what has a history.
    pub(in crate::tape) fn made_of(self: &Rc<Self>, inputs: &[&Tensor]) {
        if self.region.borrow().is_none() {
            return;
        }
        let external = self
            .region
            .borrow()
            .as_ref()
            .is_some_and(|region| region.external);
        if !external {
            self.begin_operation(inputs);
            self.end_operation();
        }
    }

    /// A tensor is saved for backward.
    pub(in crate::tape) fn pack_compiled(self: &Rc<Self>, tensor: &Tensor) -> Packed {
        let mut region = self.region.borrow_mut();
        let Some(region) = region.as_mut() else {
            return Packed::AsItIs;
        };
        let Some(storage) = tensor.storage_id() else {
            return Packed::AsItIs;
        };
        let place = region.saved;
        region.saved += 1;
        match &mut region.run {
            Pass::Trace(graph) => {
                graph.saves.push(storage);
                let made = std::mem::take(&mut region.open);
                let known = graph.places.contains_key(&storage);
                if !known && made.iter().any(|made| made.storage == storage) {
                    let kind = (region.external, region.flops);
                    graph.complete(self, &made, &region.reads, kind);
                } else {
                    region.open = made;
                }
                let place = graph.place(self, storage);
                if let Some(value) = graph.values.get_mut(place) {
                    value.saved = true;
                    value.read_whole |= region.external;
                }
                Packed::AsItIs
            }
            Pass::Run {
                plan, live, again, ..
            } => {
                let Some(sources) = plan.sources.get(place) else {
                    return Packed::AsItIs;
                };
                for made in &region.open {
                    if plan.kept.get(made.ordinal) == Some(&true) {
                        region.kept_storages.insert(made.ordinal, made.storage);
                        live.entry(made.ordinal)
                            .or_insert_with(|| self.held(made, *again));
                    }
                }
                let itself = match (
                    &sources[..],
                    region.open.iter().find(|made| made.storage == storage),
                ) {
                    ([Origin::Outside(only)], _) => *only == storage,
                    ([Origin::Made(only)], Some(made)) => *only == made.ordinal,
                    ([Origin::Made(only)], None) => {
                        region.kept_storages.get(only) == Some(&storage)
                    }
                    _ => false,
                };
                let held: Vec<Rc<Held>> = sources
                    .iter()
                    .filter_map(|origin| match origin {
                        Origin::Made(ordinal) => {
                            live.get(ordinal).map(|held| match held.storage.get() {
                                Some(storage) => Held::of(self, storage),
                                None => held.clone(),
                            })
                        }
                        Origin::Outside(storage) => Some(Held::of(self, *storage)),
                    })
                    .collect();
                if itself && (!*again || matches!(sources[..], [Origin::Outside(_)])) {
                    return Packed::AsItIs;
                }
                Packed::Remade(Remade {
                    itself,
                    core: self.clone(),
                    layout: tensor.shared_layout().clone(),
                    dtype: tensor.dtype(),
                    sources: held,
                })
            }
        }
    }

    /// Runs a node of backward: what a generated kernel makes is put off.
    pub(in crate::tape) fn run_compiled(
        self: &Rc<Self>,
        compiled: Compiled,
        incoming: Grads,
        backward: Backward,
    ) -> Grads {
        if compiled != Compiled::Fused {
            for gradient in incoming.iter().flatten() {
                gradient.realise();
            }
            return backward(incoming);
        }
        let reads = incoming.iter().flatten().filter_map(Tensor::storage_id);
        let sources = reads.flat_map(|read| self.sources_of(read)).collect();
        self.fused.replace(Some(sources));
        let outgoing = backward(incoming);
        let read = self.fused.take();
        drop(read);
        outgoing
    }

    /// An input of a checkpointed part of the graph, which the tags of checkpointing keep (`cleanup_recompute_tags`).
    pub(in crate::tape) fn keep_for_recomputation(self: &Rc<Self>, tensor: &Tensor) {
        drop(self.pack_compiled(tensor));
        if let Some(Region {
            run: Pass::Trace(graph),
            ..
        }) = &mut *self.region.borrow_mut()
            && let Some(place) = tensor.storage_id().and_then(|of| graph.places.get(&of))
            && let Some(value) = graph.values.get_mut(*place)
        {
            (value.read_whole, value.again) = (true, false);
        }
    }

    /// What a new node of the graph is.
    pub(in crate::tape) fn compiled_as(&self) -> Compiled {
        match self.region.borrow().as_ref() {
            None => Compiled::Not,
            Some(region) if region.external => Compiled::External,
            Some(_) => Compiled::Fused,
        }
    }
}

impl Tensor {
    /// The same cast of this tensor a moment ago: a traced graph has equal ones once.
    pub(in crate::tape) fn cast_before(&self, dtype: DType) -> Option<Tensor> {
        let region = self.core().region.borrow();
        let storage = self.storage_id()?;
        let casts = &region.as_ref()?.casts;
        let same = |(of, cast): &&(u32, Tensor)| {
            *of == storage && cast.dtype() == dtype && cast.shape() == self.shape()
        };
        casts.iter().find(same).map(|(_, cast)| cast.clone())
    }

    pub(in crate::tape) fn remember_cast(&self, cast: &Tensor) {
        const RECENT: usize = 4;
        let mut gone = None;
        if let (Some(region), Some(storage)) =
            (&mut *self.core().region.borrow_mut(), self.storage_id())
            && !self.is_leaf_param()
        {
            region.casts.push_back((storage, cast.clone()));
            if region.casts.len() > RECENT {
                gone = region.casts.pop_front();
            }
        }
        drop(gone);
    }

    /// A kernel that is not generated reads these tensors: they need memory, and so does what it makes.
    pub(in crate::tape) fn read_whole(tensors: &[&Tensor]) {
        let Some(core) = tensors.first().map(|tensor| tensor.core()) else {
            return;
        };
        if core.region.borrow().is_none() {
            return;
        }
        for tensor in tensors {
            tensor.realise();
        }
        if let Some(region) = &mut *core.region.borrow_mut() {
            region.external = true;
        }
    }

    pub(in crate::tape) fn is_put_off(&self) -> bool {
        let put_off = self.core().put_off_values.borrow();
        self.storage_id()
            .is_some_and(|storage| put_off.contains_key(&storage))
    }

    /// A sum of gradients in a generated kernel.
    pub(in crate::tape) fn plus_fused(self, other: Tensor) -> Tensor {
        let core = self.core().clone();
        let storages = [self.storage_id(), other.storage_id()];
        let sources = storages.into_iter().flatten();
        let sources = sources.flat_map(|read| core.sources_of(read)).collect();
        let outer = core.fused.replace(Some(sources));
        let sum = self.plus(&other);
        drop((self, other));
        let read = core.fused.replace(outer);
        drop(read);
        sum
    }

    /// Gives it memory, if that was put off.
    pub(in crate::tape) fn realise(&self) {
        if let Some(storage) = self.storage_id() {
            self.core().realise(storage);
        }
    }
}

impl Tape {
    /// Whether a compiled region runs.
    pub fn compiles(&self) -> bool {
        self.0.region.borrow().is_some()
    }

    /// Runs a region as `torch.compile` does: the outputs of a traced graph, without what is between its kernels.
    pub fn compiled(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        self.compiled_with(body, false, 1.0)
    }

    /// The same with an `activation_memory_budget` between 0 and 1.
    pub fn compiled_within(&self, body: &dyn Fn() -> Vec<Tensor>, budget: f64) -> Vec<Tensor> {
        self.compiled_with(body, false, budget)
    }

    /// Runs `body` in the pool of CUDA graphs, which shares nothing with the others.
    pub fn in_graph_pool<T>(&self, body: impl FnOnce() -> T) -> T {
        /// Beside the streams of wrappers, none of which is compiled.
        const GRAPHS: Stream = Stream::side(4);
        if self.declaring() {
            body()
        } else {
            self.on(GRAPHS, body)
        }
    }

    /// The same with an `activation_memory_budget` of zero: only inputs are saved.
    pub fn compiled_to_recompute(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        self.compiled_with(body, true, 1.0)
    }

    fn compiled_with(
        &self,
        body: &dyn Fn() -> Vec<Tensor>,
        again: bool,
        budget: f64,
    ) -> Vec<Tensor> {
        let idle = self.0.left_out.get() || self.0.stopped.get() || self.declaring();
        if idle || self.compiles() {
            return body();
        }
        let mut plans: VecDeque<Rc<Plan>> = self
            .trace_region(body, budget)
            .into_iter()
            .map(Rc::new)
            .collect();
        let outside = plans.iter().flat_map(|plan| &plan.sources).flatten();
        let outside = outside.filter_map(|origin| match origin {
            Origin::Outside(storage) => Some(*storage),
            Origin::Made(_) => None,
        });
        self.0.leaving.borrow_mut().extend(outside);
        let Some(plan) = plans.pop_front() else {
            return body();
        };
        let outer = self.0.region.replace(Some(Region {
            run: Pass::Run {
                plan,
                next: plans,
                live: BTreeMap::new(),
                again,
            },
            ..Region::default()
        }));
        let outputs = body();
        for output in &outputs {
            output.realise();
        }
        let region = self.0.region.replace(outer);
        let later = match &region {
            Some(Region {
                run:
                    Pass::Run {
                        plan,
                        live,
                        again: true,
                        ..
                    },
                kept_storages,
                ..
            }) => live
                .iter()
                .filter(|(ordinal, _)| plan.kept.get(**ordinal) == Some(&true))
                .filter_map(|(ordinal, held)| {
                    let storage = kept_storages.get(ordinal)?;
                    Some((held.clone(), self.0.bytes_of(*storage)))
                })
                .collect(),
            _ => Vec::new(),
        };
        drop(region);
        self.leave_region(outputs, later)
    }

    /// The region as graphs, and what of them is kept.
    fn trace_region(&self, body: &dyn Fn() -> Vec<Tensor>, budget: f64) -> Vec<Plan> {
        let core = &self.0;
        let outer = core.region.replace(Some(Region {
            budget,
            ..Region::default()
        }));
        let kernels = core.kernels_left_out.replace(true);
        let sequence = core.sequence.get();
        let hooks = core.hooks.take();
        self.in_inner_graph(|| drop(body()));
        core.hooks.replace(hooks);
        core.sequence.set(sequence);
        core.kernels_left_out.set(kernels);
        let traced = core.region.replace(outer).unwrap_or_default();
        let mut plans = traced.traced;
        if let Pass::Trace(graph) = traced.run {
            plans.push(graph.plan(core, traced.made, budget));
        }
        plans
    }

    /// A graph break: one compiled graph ends with this tensor, and another goes on with it. The frame that was interrupted
    /// holds it until backward reaches this place in the next step.
    pub fn break_graph(&self, crossing: &Tensor) -> Tensor {
        let core = &self.0;
        if core.region.borrow().is_none() {
            return crossing.clone();
        }
        crossing.realise();
        let Some(mut region) = core.region.take() else {
            return crossing.clone();
        };
        let casts = std::mem::take(&mut region.casts);
        drop(casts);
        let made = std::mem::take(&mut region.made);
        (region.saved, region.external) = (0, false);
        (region.open, region.reads) = (Vec::new(), Vec::new());
        region.kept_storages.clear();
        let mut over = None;
        match &mut region.run {
            Pass::Trace(graph) => {
                let budget = region.budget;
                region
                    .traced
                    .push(std::mem::take(graph).plan(core, made, budget));
            }
            Pass::Run {
                plan, next, live, ..
            } => {
                if let Some(next) = next.pop_front() {
                    *plan = next;
                }
                over = Some(std::mem::take(live));
                core.leaving.borrow_mut().extend(crossing.storage_id());
                core.crossed.borrow_mut().push(crossing.detach());
            }
        }
        drop(over);
        let tape = self.clone();
        let out = crossing.with_edge(None).from_op(&[crossing], move |_| {
            borrowing(move |g| {
                tape.forget_crossed();
                grads([Some(g.clone())])
            })
        });
        core.region.replace(Some(region));
        out
    }

    /// All interrupted frames go: what CUDA graphs hold of a step is over with its backward.
    pub fn forget_interrupted(&self) {
        drop(self.0.crossed.take());
    }

    /// Runs `body`, a part of a node of backward, in a kernel of its own: what it makes has memory at once.
    pub(in crate::tape) fn apart<T>(&self, body: impl FnOnce() -> T) -> T {
        let fused = self.0.fused.take();
        let made = body();
        self.0.fused.replace(fused);
        made
    }

    /// Interrupted frames of steps before this one go.
    fn forget_crossed(&self) {
        let mut crossed = self.0.crossed.borrow_mut();
        let last = crossed.pop();
        let before = std::mem::take(&mut *crossed);
        crossed.extend(last);
        drop(crossed);
        drop(before);
    }

    /// Zeros as a gradient that a compiled graph is given.
    fn given_zeros(&self, layout: Layout, dtype: DType) -> Tensor {
        let zeros = self.apart(|| self.empty_as("zeros", layout, dtype));
        self.0.leaving.borrow_mut().extend(zeros.storage_id());
        zeros
    }

    /// Outputs of the compiled function. A floating output whose gradient nobody makes gets zeros for it
    /// (`set_materialize_grads` of the autograd function that calls the compiled backward).
    fn leave_region(&self, outputs: Vec<Tensor>, later: Vec<(Rc<Held>, u64)>) -> Vec<Tensor> {
        let mut outputs = outputs.into_iter();
        let Some(first) = outputs.next() else {
            return Vec::new();
        };
        let others: Vec<Tensor> = outputs.collect();
        let leaves = |output: &Tensor| {
            let mut leaving = self.0.leaving.borrow_mut();
            output
                .storage_id()
                .is_some_and(|storage| leaving.insert(storage))
        };
        let waiting: Vec<(GradientEdge, Rc<Shared>, DType)> = others
            .iter()
            .filter(|output| leaves(output) && output.dtype().is_floating())
            .filter_map(|output| {
                Some((
                    output.gradient_edge()?,
                    output.shared_layout().clone(),
                    output.dtype(),
                ))
            })
            .collect();
        let tape = self.clone();
        let entry = first.clone().with_edge(None).from_op(&[&first], move |_| {
            let backward: Backward = borrowing(move |g| {
                for (held, bytes) in later {
                    let made = tape.0.allocate("recomputed", bytes, Category::Activations);
                    held.storage.set(made);
                }
                for (edge, layout, dtype) in &waiting {
                    let zeros = tape.given_zeros(layout.layout, *dtype);
                    edge.wait_with(zeros);
                }
                grads([Some(g.clone())])
            });
            backward
        });
        std::iter::once(entry).chain(others).collect()
    }
}
