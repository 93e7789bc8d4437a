//! The region that runs: what its operations read and make, in the order in which they do.

use std::rc::Rc;

use super::graph::{Compiled, Made, Operation};
use crate::tape::core::Pass;
use crate::tape::{Backward, Core, DType, Grads, Tensor};

/// Operations that Inductor generates, besides those that call `generates`; all others count as a library's.
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

impl Core {
    /// Whether the storage that is being made has no memory yet.
    pub(in crate::tape) fn defers(&self, storage: u32, bytes: u64, op: &'static str) -> bool {
        if let Some(reads) = &*self.compiler.fused.borrow() {
            let sources = reads.clone();
            self.compiler
                .deferred_values
                .borrow_mut()
                .insert(storage, sources);
            return true;
        }
        let mut region = self.compiler.region.borrow_mut();
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
            Pass::Run {
                plan,
                recompute_all,
                ..
            } => {
                !region.external
                    && (*recompute_all || !plan.kept.get(ordinal).copied().unwrap_or(false))
            }
        };
        if waits {
            self.compiler
                .deferred_values
                .borrow_mut()
                .insert(storage, Vec::new());
        }
        waits
    }

    /// Adds the work of one kernel of the current operation.
    pub(in crate::tape) fn add_flops(&self, flops: f64) {
        if !self.compiler.is_used.get() {
            return;
        }
        if let Some(region) = &mut *self.compiler.region.borrow_mut() {
            region.flops += flops;
        }
    }

    /// The storage made next is that of an element-wise kernel or a reduction.
    pub(in crate::tape) fn generates(&self) {
        if let Some(region) = &mut *self.compiler.region.borrow_mut() {
            region.generated = true;
        }
    }

    /// The operation under way reads these; returns whether a library's kernel runs it.
    pub(in crate::tape) fn begin_operation(self: &Rc<Self>, inputs: &[&Tensor]) -> Compiled {
        if !self.compiler.is_used.get() {
            return Compiled::Not;
        }
        let mut region = self.compiler.region.borrow_mut();
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
        if !self.compiler.is_used.get() {
            return;
        }
        let mut taken = self.compiler.region.borrow_mut();
        let Some(region) = taken.as_mut() else {
            return;
        };
        let made = std::mem::take(&mut region.open);
        let reads = std::mem::take(&mut region.reads);
        let external = std::mem::take(&mut region.external);
        let flops = std::mem::take(&mut region.flops);
        let selected = std::mem::take(&mut region.selected);
        let launched = std::mem::take(&mut region.launched);
        match &mut region.run {
            Pass::Trace(graph) => {
                let operation = Operation {
                    made: &made,
                    reads: &reads,
                    external,
                    flops,
                    recompute: !selected && self.checkpoints(),
                };
                graph.complete(&operation, &|storage| self.bytes_of(storage));
            }
            Pass::Run {
                plan,
                live,
                recompute_all,
                ..
            } => {
                for made in &made {
                    if plan.kept.get(made.ordinal) == Some(&true) {
                        region.kept_storages.insert(made.ordinal, made.storage);
                        live.entry(made.ordinal)
                            .or_insert_with(|| self.held(made, *recompute_all));
                    }
                }
                let again = |made: &Made| plan.recomputed.contains(&made.ordinal);
                if *recompute_all || external && made.iter().any(again) {
                    region.again.extend(launched);
                }
                drop(taken);
                self.computed_from(&made, &reads);
                if !external {
                    self.launch_kept(&made, &reads);
                }
            }
        }
    }

    /// An element-wise kernel makes one value of others, perhaps outside of what has a history.
    pub(in crate::tape) fn fused_from(self: &Rc<Self>, inputs: &[&Tensor]) {
        if !self.compiler.is_used.get() {
            return;
        }
        if self.compiler.region.borrow().is_none() {
            return;
        }
        let external = self
            .compiler
            .region
            .borrow()
            .as_ref()
            .is_some_and(|region| region.external);
        if !external {
            self.begin_operation(inputs);
            self.end_operation();
        }
    }

    /// Runs a node of backward: what a generated kernel makes is deferred.
    pub(in crate::tape) fn run_compiled(
        self: &Rc<Self>,
        compiled: Compiled,
        incoming: Grads,
        backward: Backward,
    ) -> Grads {
        if compiled != Compiled::Fused {
            for gradient in incoming.iter().flatten() {
                gradient.allocate_deferred();
            }
            return backward(incoming);
        }
        let reads = incoming.iter().flatten().filter_map(Tensor::storage_id);
        let sources = reads.flat_map(|read| self.sources_of(read)).collect();
        self.compiler.fused.replace(Some(sources));
        let outgoing = backward(incoming);
        let read = self.compiler.fused.take();
        drop(read);
        outgoing
    }

    /// Whether the region is traced, so that nothing has memory.
    pub(super) fn traces(&self) -> bool {
        let region = self.compiler.region.borrow();
        matches!(
            region.as_ref().map(|region| &region.run),
            Some(Pass::Trace(_))
        )
    }

    /// What a new node of the graph is.
    pub(in crate::tape) fn compiled_as(&self) -> Compiled {
        if !self.compiler.is_used.get() {
            return Compiled::Not;
        }
        match self.compiler.region.borrow().as_ref() {
            None => Compiled::Not,
            Some(region) if region.external => Compiled::External,
            Some(_) => Compiled::Fused,
        }
    }
}

impl Tensor {
    /// The same cast of this tensor a moment ago: a traced graph has equal ones once.
    pub(in crate::tape) fn cast_before(&self, dtype: DType) -> Option<Tensor> {
        if !self.core().compiler.is_used.get() {
            return None;
        }
        let region = self.core().compiler.region.borrow();
        let storage = self.storage_id()?;
        let casts = &region.as_ref()?.casts;
        let same = |(of, cast): &&(u32, Tensor)| {
            *of == storage && cast.dtype() == dtype && cast.shape() == self.shape()
        };
        casts.iter().find(same).map(|(_, cast)| cast.clone())
    }

    pub(in crate::tape) fn remember_cast(&self, cast: &Tensor) {
        const RECENT: usize = 4;
        if !self.core().compiler.is_used.get() {
            return;
        }
        let mut gone = None;
        if let (Some(region), Some(storage)) = (
            &mut *self.core().compiler.region.borrow_mut(),
            self.storage_id(),
        ) && !self.is_leaf_param()
        {
            region.casts.push_back((storage, cast.clone()));
            if region.casts.len() > RECENT {
                gone = region.casts.pop_front();
            }
        }
        drop(gone);
    }
}
