//! Symbolic tensors: a shape over shared storage, alive while a handle is.

use std::fmt;
use std::rc::Rc;

use super::core::{Edge, Inner, Node, SavedVariable, Slot};
use super::layout::{self, Shared};
use super::spare::{Spare, keep, placed};
use super::{Category, Core, DType, Dims, Event, Layout, Source, Storage, Tape, Tensor};

thread_local! {
    static SLOTS: Spare<Slot> = const { Spare::new() };
}

impl From<Inner> for Tensor {
    fn from(inner: Inner) -> Self {
        Self(placed(&SLOTS, Some(inner)))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if self.is_last_handle() {
            self.release_slot();
        }
    }
}

impl Tensor {
    /// Drops the contents and recycles the slot.
    #[inline(never)]
    fn release_slot(&mut self) {
        let slot = Rc::get_mut(&mut self.0);
        let Some(inner) = slot.and_then(Option::as_mut) else {
            return;
        };
        // Dropped in place: moving them out first is slower.
        inner.core.release(inner.storage);
        drop(inner.edge.take());
        if let Some(slot) = Rc::get_mut(&mut self.0) {
            *slot = None;
        }
        keep(&SLOTS, self.0.clone());
    }

    fn inner(&self) -> &Inner {
        match &*self.0 {
            Some(inner) => inner,
            // A slot is emptied only when its last handle is dropped.
            None => std::process::abort(),
        }
    }
}

impl Core {
    /// A new storage with one holder; `None` for zero bytes.
    pub(in crate::tape) fn allocate(
        &self,
        op: &'static str,
        bytes: u64,
        category: Category,
    ) -> Option<u32> {
        let mode = self.ambient.mode.get();
        let unmade = self.ambient.stopped.get()
            || self.ambient.shapes_only.get()
            || (mode.declaring && !mode.setup);
        if !self.budget.allows_one_more() || bytes == 0 || unmade {
            return None;
        }
        let mut trace = self.trace.borrow_mut();
        let storage = trace.storages.len() as u32;
        let source = Source {
            op,
            scope: mode.scope,
        };
        let new = Storage {
            bytes,
            category,
            source: trace.number_of(source, &self.recorder.sources),
            copies: 1,
            carried: false,
            stream: mode.stream,
            holders: 1,
        };
        trace.storages.push(new);
        if mode.setup || !self.compiler.is_used.get() {
            trace.record(Event::alloc(storage), mode.setup);
            return Some(storage);
        }
        drop(trace);
        if !self.defers(storage, bytes, op) {
            let mut trace = self.trace.borrow_mut();
            trace.record(Event::alloc(storage), false);
        }
        Some(storage)
    }

    /// One more tensor shares this storage.
    pub(in crate::tape) fn hold(&self, storage: Option<u32>) {
        if let Some(storage) = storage {
            let mut trace = self.trace.borrow_mut();
            if let Some(entry) = trace.storages.get_mut(storage as usize) {
                entry.holders += 1;
            }
        }
    }

    /// One tensor fewer shares this storage, which is freed with the last.
    pub(in crate::tape) fn release(&self, storage: Option<u32>) {
        let Some(storage) = storage.filter(|_| !self.recorder.closed.get()) else {
            return;
        };
        let mut trace = self.trace.borrow_mut();
        if let Some(entry) = trace.storages.get_mut(storage as usize) {
            entry.holders -= 1;
            if entry.holders > 0 {
                return;
            }
        }
        if self.compiler.is_used.get() {
            drop(trace);
            if self.is_unallocated(storage) {
                return;
            }
            trace = self.trace.borrow_mut();
        }
        trace.record(Event::free(storage), self.ambient.mode.get().setup);
    }

    pub(in crate::tape) fn tensor(
        self: &Rc<Self>,
        op: &'static str,
        bytes: u64,
        layout: Layout,
        dtype: DType,
        category: Category,
    ) -> Tensor {
        let tensor = Tensor::from(Inner {
            core: self.clone(),
            layout: layout::shared(layout),
            edge: None,
            storage: self.allocate(op, bytes, category),
            dtype,
            view: false,
        });
        self.record_result(&tensor);
        tensor
    }

    /// A new tensor in memory of its own.
    pub(in crate::tape) fn empty(
        self: &Rc<Self>,
        op: &'static str,
        layout: Layout,
        dtype: DType,
    ) -> Tensor {
        self.laid_out(op, layout::shared(layout), dtype)
    }

    fn laid_out(self: &Rc<Self>, op: &'static str, layout: Rc<Shared>, dtype: DType) -> Tensor {
        let bytes = layout.numel.saturating_mul(dtype.bytes());
        let tensor = Tensor::from(Inner {
            core: self.clone(),
            layout,
            edge: None,
            storage: self.allocate(op, bytes, self.natural_category()),
            dtype,
            view: false,
        });
        self.record_result(&tensor);
        tensor
    }
}

impl Tensor {
    pub(crate) fn tape(&self) -> Tape {
        Tape(self.core().clone())
    }
    pub(in crate::tape) fn core(&self) -> &Rc<Core> {
        &self.inner().core
    }
    pub(crate) fn layout(&self) -> &Layout {
        &self.inner().layout.layout
    }
    pub(in crate::tape) fn is_contiguous(&self) -> bool {
        self.inner().layout.contiguous
    }
    pub(in crate::tape) fn is_dense(&self) -> bool {
        self.inner().layout.dense
    }
    /// Whether its strides are exactly those of `Layout::contiguous`.
    pub(in crate::tape) fn is_row_major(&self) -> bool {
        self.inner().layout.row_major
    }
    pub(in crate::tape) fn shared_layout(&self) -> &Rc<Shared> {
        &self.inner().layout
    }
    /// `self.shape`.
    pub fn shape(&self) -> &Dims {
        &self.inner().layout.layout.shape
    }
    /// The size of a dimension, counted from the end when negative; 1 where there is none.
    pub fn size(&self, dim: isize) -> u64 {
        self.dim(dim)
            .and_then(|i| self.shape().get(i).copied())
            .unwrap_or(1)
    }
    pub(in crate::tape) fn dim(&self, dim: isize) -> Option<usize> {
        usize::try_from(if dim < 0 {
            dim + self.shape().len() as isize
        } else {
            dim
        })
        .ok()
    }
    /// `self.dtype`.
    pub fn dtype(&self) -> DType {
        self.inner().dtype
    }
    /// `self.numel()`.
    pub fn numel(&self) -> u64 {
        self.inner().layout.numel
    }
    /// `self.nbytes`: the size of its elements, which for a view is not that of its storage.
    pub fn bytes(&self) -> u64 {
        self.numel().saturating_mul(self.dtype().bytes())
    }
    pub(crate) fn requires_grad(&self) -> bool {
        self.inner().edge.is_some()
    }
    pub(in crate::tape) fn edge(&self) -> Option<Edge> {
        self.inner().edge.clone()
    }
    pub(in crate::tape) fn is_view(&self) -> bool {
        self.inner().view
    }
    /// Whether its gradient goes to a leaf of the graph: it is a parameter as forward code sees it.
    pub(in crate::tape) fn is_leaf_param(&self) -> bool {
        self.leaf().is_some()
    }
    /// The leaf of the graph that it is, if it is one.
    pub(in crate::tape) fn leaf(&self) -> Option<&Rc<Node>> {
        let edge = self.inner().edge.as_ref()?;
        edge.node.is_leaf().then_some(&edge.node)
    }
    /// The number of its storage in the trace.
    pub(crate) fn storage_id(&self) -> Option<u32> {
        self.inner().storage
    }
    /// The size of its storage: none where its memory is not on the card.
    pub(crate) fn storage_bytes(&self) -> u64 {
        let storage = self.storage_id().and_then(|storage| {
            let trace = self.core().trace.borrow();
            trace.storages.get(storage as usize).map(|it| it.bytes)
        });
        storage.unwrap_or(0)
    }
    /// Whether nothing else holds this storage, so that a sum may be written into it. A view is never the sole owner:
    /// it holds its base (`can_accumulate_inplace` in input_buffer.cpp).
    pub(in crate::tape) fn is_sole_owner(&self) -> bool {
        !self.is_view()
            && self.is_last_handle()
            && self.storage_id().is_none_or(|storage| {
                let trace = self.core().trace.borrow();
                let storage = trace.storages.get(storage as usize);
                storage.is_none_or(|storage| storage.holders == 1)
            })
    }
    /// Whether this is the last handle on the tensor, no matter who else shares its storage.
    pub(in crate::tape) fn is_last_handle(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
    pub(crate) fn set_category(&self, category: Category) {
        if let Some(storage) = self.storage_id()
            && let Some(storage) = self
                .core()
                .trace
                .borrow_mut()
                .storages
                .get_mut(storage as usize)
        {
            storage.category = category;
        }
    }

    /// Uses this tensor once and drops it, as Python does with the parts of an expression.
    /// (A Rust temporary would live to the end of its statement.)
    pub fn pipe<T>(self, body: impl FnOnce(&Self) -> T) -> T {
        body(&self)
    }

    /// A view: the same storage in another layout.
    fn sharing(&self, layout: Rc<Shared>, edge: Option<Edge>, view: bool) -> Self {
        let Inner {
            core,
            storage,
            dtype,
            ..
        } = self.inner();
        core.hold(*storage);
        Self::from(Inner {
            core: core.clone(),
            layout,
            edge,
            storage: *storage,
            dtype: *dtype,
            view,
        })
    }

    /// A view without history.
    pub(in crate::tape) fn alias(&self, layout: Layout) -> Self {
        self.sharing(layout::shared(layout), None, true)
    }

    /// `torch.as_strided(self, ..)` without history: a part of the same storage.
    pub fn as_strided(&self, layout: Layout) -> Self {
        self.alias(layout)
    }

    /// The same tensor in another shape, as if a kernel had written it: not a view.
    pub(in crate::tape) fn shaped(&self, layout: Layout) -> Self {
        self.sharing(layout::shared(layout), None, false)
    }

    /// The same storage in another layout: a view, or the tensor itself as a kernel wrote it.
    pub fn with_layout(&self, layout: Layout, view: bool) -> Self {
        if view {
            self.alias(layout)
        } else {
            self.shaped(layout)
        }
    }

    /// A tensor over a storage that something else holds.
    pub(in crate::tape) fn of_storage(
        core: &Rc<Core>,
        layout: &Rc<Shared>,
        storage: u32,
        dtype: DType,
    ) -> Self {
        core.hold(Some(storage));
        Self::from(Inner {
            core: core.clone(),
            layout: layout.clone(),
            edge: None,
            storage: Some(storage),
            dtype,
            view: true,
        })
    }

    pub(in crate::tape) fn saved_variable(&self) -> SavedVariable {
        let Inner {
            core,
            layout,
            storage,
            dtype,
            ..
        } = self.inner();
        core.hold(*storage);
        SavedVariable {
            core: core.clone(),
            layout: layout.clone(),
            storage: *storage,
            dtype: *dtype,
        }
    }

    /// `detach()`: the same storage without history.
    pub fn detach(&self) -> Self {
        self.sharing(self.inner().layout.clone(), None, true)
    }

    /// A tensor of the same shape in another dtype, whose memory is accounted for elsewhere.
    pub(in crate::tape) fn without_memory(&self, dtype: DType) -> Self {
        Self::from(Inner {
            core: self.core().clone(),
            layout: self.inner().layout.clone(),
            edge: None,
            storage: None,
            dtype,
            view: false,
        })
    }

    /// The same tensor with another history; an in-place operation returns this.
    pub(in crate::tape) fn with_edge(&self, edge: Option<Edge>) -> Self {
        self.sharing(self.inner().layout.clone(), edge, self.inner().view)
    }

    /// Its gradient edge, without its storage (`torch.autograd.graph.GradientEdge`).
    pub fn edge_alone(&self) -> Self {
        let Inner {
            core,
            layout,
            edge,
            dtype,
            ..
        } = self.inner();
        Self::from(Inner {
            core: core.clone(),
            layout: layout.clone(),
            edge: edge.clone(),
            storage: None,
            dtype: *dtype,
            view: false,
        })
    }

    /// `with_edge` for a tensor that nothing else holds yet, which saves an allocation.
    pub(in crate::tape) fn into_with_edge(mut self, edge: Edge) -> Self {
        match Rc::get_mut(&mut self.0).and_then(Option::as_mut) {
            Some(inner) => {
                inner.edge = Some(edge);
                self
            }
            None => self.with_edge(Some(edge)),
        }
    }

    /// A new storage in the same layout.
    pub fn empty_like(&self, op: &'static str, dtype: DType) -> Self {
        self.core().laid_out(op, self.inner().layout.clone(), dtype)
    }
}

impl SavedVariable {
    /// The tensor, as `detach()` would return it.
    pub(crate) fn tensor(&self) -> Tensor {
        self.core.hold(self.storage);
        Tensor::from(Inner {
            core: self.core.clone(),
            layout: self.layout.clone(),
            edge: None,
            storage: self.storage,
            dtype: self.dtype,
            view: true,
        })
    }
}

impl Drop for SavedVariable {
    fn drop(&mut self) {
        self.core.release(self.storage);
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:?}", self.dtype(), self.shape())
    }
}
