//! `torch.compile`: a region of the program is traced as a graph, what it saves for backward is the smallest cut of that graph
//! (`cut`), and chains of element-wise operations become one kernel, so that their intermediates never have memory.
//!
//! The region runs twice. First it is traced: operations only note what they read and make. Then it runs with the cut known:
//! a value that a generated kernel makes is *deferred* until a kernel that is not generated reads it, and holds what it is
//! computed from until then. Inductor writes such a value over an input of the same size that nothing else needs
//! (`buf = input; del input  # reuse` in its code).

mod breaks;
mod budget;
mod cut;
mod deferred;
mod graph;
mod recent;
mod region;
mod saved;
mod traffic;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::core::{Pass, Region, StorageRef};
use super::layout::Shared;
use super::{
    Backward, Category, Core, DType, GradientEdge, Layout, Stream, Tape, Tensor, borrowing, grads,
};
use graph::Origin;

pub(in crate::tape) use graph::{Compiled, Graph, Made, Plan};
pub(in crate::tape) use recent::Cuts;
pub(in crate::tape) use traffic::Launch;

impl Tape {
    /// Whether a compiled region runs.
    pub fn compiles(&self) -> bool {
        self.0.compiler.region.borrow().is_some()
    }

    /// Runs a region as `torch.compile` does: the outputs of a traced graph, without what is between its kernels.
    pub fn compiled(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        self.compiled_with(body, false, 1.0)
    }

    /// The same with an `activation_memory_budget` between 0 and 1.
    pub fn compiled_within(&self, body: &dyn Fn() -> Vec<Tensor>, budget: f64) -> Vec<Tensor> {
        self.compiled_with(body, false, budget)
    }

    /// The same with an `activation_memory_budget` of zero: only inputs are saved.
    pub fn compiled_to_recompute(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        self.compiled_with(body, true, 1.0)
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

    fn compiled_with(
        &self,
        body: &dyn Fn() -> Vec<Tensor>,
        recompute_all: bool,
        budget: f64,
    ) -> Vec<Tensor> {
        let idle =
            self.0.ambient.shapes_only.get() || self.0.ambient.stopped.get() || self.declaring();
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
        self.0.compiler.escaping.borrow_mut().extend(outside);
        let Some(plan) = plans.pop_front() else {
            return body();
        };
        let outer = self.0.compiler.region.replace(Some(Region {
            run: Pass::Run {
                plan,
                next: plans,
                live: BTreeMap::new(),
                recompute_all,
            },
            ..Region::default()
        }));
        let outputs = body();
        for output in &outputs {
            output.allocate_deferred();
        }
        let mut region = self.0.compiler.region.replace(outer);
        let again = region
            .as_mut()
            .map(|region| std::mem::take(&mut region.again));
        let again = again.unwrap_or_default();
        let later = match &region {
            Some(Region {
                run:
                    Pass::Run {
                        plan,
                        live,
                        recompute_all: true,
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
        self.leave_region(outputs, later, again)
    }

    /// The region as graphs, and what of them is kept.
    fn trace_region(&self, body: &dyn Fn() -> Vec<Tensor>, budget: f64) -> Vec<Plan> {
        let core = &self.0;
        core.compiler.is_used.set(true);
        let outer = core.compiler.region.replace(Some(Region {
            budget,
            ..Region::default()
        }));
        let kernels = core.recorder.skips_kernels.replace(true);
        let sequence = core.autograd.sequence.get();
        let hooks = core.autograd.hooks.take();
        self.in_inner_graph(|| drop(body()));
        core.autograd.hooks.replace(hooks);
        core.autograd.sequence.set(sequence);
        core.recorder.skips_kernels.set(kernels);
        let traced = core.compiler.region.replace(outer).unwrap_or_default();
        let mut plans = traced.traced;
        if let Pass::Trace(graph) = traced.run {
            plans.push(core.plan(graph, traced.made, budget));
        }
        plans
    }

    /// Outputs of the compiled function. A floating output whose gradient nobody makes gets zeros for it
    /// (`set_materialize_grads` of the autograd function that calls the compiled backward).
    fn leave_region(
        &self,
        outputs: Vec<Tensor>,
        later: Vec<(Rc<StorageRef>, u64)>,
        again: Vec<Launch>,
    ) -> Vec<Tensor> {
        let mut outputs = outputs.into_iter();
        let Some(first) = outputs.next() else {
            return Vec::new();
        };
        let others: Vec<Tensor> = outputs.collect();
        let leaves = |output: &Tensor| {
            let mut leaving = self.0.compiler.escaping.borrow_mut();
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
                tape.0.launch_again(&again);
                for (held, bytes) in later {
                    let made = tape.0.allocate("recomputed", bytes, Category::Activations);
                    held.storage.set(made);
                }
                for (edge, layout, dtype) in &waiting {
                    let zeros = tape.zero_gradient(layout.layout, *dtype);
                    edge.wait_with(zeros);
                }
                grads([Some(g.clone())])
            });
            backward
        });
        std::iter::once(entry).chain(others).collect()
    }

    /// Zeros as a gradient that a compiled graph is given.
    fn zero_gradient(&self, layout: Layout, dtype: DType) -> Tensor {
        let zeros = self.apart(|| self.empty_as("zeros", layout, dtype));
        self.0
            .compiler
            .escaping
            .borrow_mut()
            .extend(zeros.storage_id());
        zeros
    }
}

impl Core {
    fn plan(&self, graph: Graph, made: usize, budget: f64) -> Plan {
        let cut = self.compiler.cuts.borrow_mut().of(&graph.values, budget);
        graph.plan(&cut, made)
    }

    pub(in crate::tape::compile) fn bytes_of(&self, storage: u32) -> u64 {
        let trace = self.trace.borrow();
        trace
            .storages
            .get(storage as usize)
            .map_or(0, |storage| storage.bytes)
    }
}
