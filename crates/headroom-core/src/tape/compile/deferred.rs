//! Fused (Inductor) values: materialized only when a non-generated kernel reads them.

use std::cell::Cell;
use std::rc::Rc;

use super::graph::Made;
use crate::tape::core::StorageRef;
use crate::tape::{Core, Event, Tape, Tensor};

impl StorageRef {
    pub(super) fn of(core: &Rc<Core>, storage: u32) -> Rc<Self> {
        core.hold(Some(storage));
        Rc::new(Self {
            core: core.clone(),
            storage: Cell::new(Some(storage)),
        })
    }

    /// Of a value that backward will make.
    pub(super) fn later(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(Self {
            core: core.clone(),
            storage: Cell::new(None),
        })
    }
}

impl Drop for StorageRef {
    fn drop(&mut self) {
        self.core.release(self.storage.get());
    }
}

impl Core {
    /// Whether a storage whose last holder is dropped never had memory.
    pub(in crate::tape) fn is_unallocated(&self, storage: u32) -> bool {
        let sources = self.compiler.deferred_values.borrow_mut().remove(&storage);
        sources.is_some()
    }

    /// What a value is computed from, where it has no memory, or itself.
    pub(super) fn sources_of(self: &Rc<Self>, storage: u32) -> Vec<Rc<StorageRef>> {
        let put_off = self
            .compiler
            .deferred_values
            .borrow()
            .get(&storage)
            .cloned();
        put_off.unwrap_or_else(|| vec![StorageRef::of(self, storage)])
    }

    /// A fused kernel reads these.
    pub(in crate::tape) fn note_sources(&self, sources: &[Rc<StorageRef>]) {
        if let Some(reads) = &mut *self.compiler.fused.borrow_mut() {
            reads.extend(sources.iter().cloned());
        }
    }

    /// A fused kernel reads a tensor.
    pub(in crate::tape) fn note_read(self: &Rc<Self>, tensor: &Tensor) {
        if !self.compiler.is_used.get() {
            return;
        }
        let Some(storage) = tensor.storage_id() else {
            return;
        };
        if self.compiler.fused.borrow().is_some() {
            let sources = self.sources_of(storage);
            self.note_sources(&sources);
        }
    }

    /// Gives a value memory that was deferred.
    fn allocate_deferred(self: &Rc<Self>, storage: u32) {
        if self.traces() {
            return;
        }
        let Some(mut sources) = self.compiler.deferred_values.borrow_mut().remove(&storage) else {
            return;
        };
        self.launch_generated(storage, &sources);
        let bytes = self.bytes_of(storage);
        let free = |source: &Rc<StorageRef>| {
            let trace = self.trace.borrow();
            let Some(storage) = source.storage.get() else {
                return false;
            };
            let of = trace.storages.get(storage as usize);
            Rc::strong_count(source) == 1
                && !self.compiler.escaping.borrow().contains(&storage)
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
        let first = self.machine.tunes && self.ambient.step.get() == 0;
        if first && self.compiler.region.borrow().is_none() {
            let tape = Tape(self.clone());
            tape.apart(|| tape.workspace("benchmark", self.machine.level2_cache()));
        }
    }

    /// Values that are deferred hold what they are computed from.
    pub(super) fn computed_from(self: &Rc<Self>, made: &[Made], reads: &[u32]) {
        let own = |read: &u32| made.iter().any(|made| made.storage == *read);
        let sources: Vec<Rc<StorageRef>> = reads
            .iter()
            .filter(|read| !own(read))
            .flat_map(|&read| self.sources_of(read))
            .collect();
        for made in made {
            if let Some(of) = self
                .compiler
                .deferred_values
                .borrow_mut()
                .get_mut(&made.storage)
            {
                of.extend(sources.iter().cloned());
            }
        }
    }
}

impl Tensor {
    /// A kernel that is not generated reads these tensors: they need memory, and so does what it makes.
    pub(in crate::tape) fn materialize(tensors: &[&Tensor]) {
        let Some(core) = tensors.first().map(|tensor| tensor.core()) else {
            return;
        };
        if !core.compiler.is_used.get() || core.compiler.region.borrow().is_none() {
            return;
        }
        for tensor in tensors {
            tensor.allocate_deferred();
        }
        if let Some(region) = &mut *core.compiler.region.borrow_mut() {
            region.external = true;
        }
    }

    pub(in crate::tape) fn is_deferred(&self) -> bool {
        if !self.core().compiler.is_used.get() {
            return false;
        }
        let put_off = self.core().compiler.deferred_values.borrow();
        self.storage_id()
            .is_some_and(|storage| put_off.contains_key(&storage))
    }

    /// A sum of gradients in a generated kernel.
    pub(in crate::tape) fn plus_fused(self, other: Tensor) -> Tensor {
        let core = self.core().clone();
        let storages = [self.storage_id(), other.storage_id()];
        let sources = storages.into_iter().flatten();
        let sources = sources.flat_map(|read| core.sources_of(read)).collect();
        let outer = core.compiler.fused.replace(Some(sources));
        let sum = self.plus(&other);
        drop((self, other));
        let read = core.compiler.fused.replace(outer);
        drop(read);
        sum
    }

    /// Gives it memory, if that was deferred.
    pub(in crate::tape) fn allocate_deferred(&self) {
        if let Some(storage) = self
            .storage_id()
            .filter(|_| self.core().compiler.is_used.get())
        {
            self.core().allocate_deferred(storage);
        }
    }
}

impl Tape {
    /// Runs `body`, a part of a node of backward, in a kernel of its own: what it makes has memory at once.
    pub(in crate::tape) fn apart<T>(&self, body: impl FnOnce() -> T) -> T {
        let fused = self.0.compiler.fused.take();
        let made = body();
        self.0.compiler.fused.replace(fused);
        made
    }
}
