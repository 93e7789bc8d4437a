//! Symbolic tensors: a shape over shared storage, alive while a handle is.

use std::fmt;
use std::rc::Rc;

use super::autograd::{Edge, Node};
use super::{Block, Category, Core, DType, Dims, Event, Layout, Tape};

/// A handle on a tensor; cloning it is taking one more Python reference, dropping it is `del`.
#[derive(Clone)]
pub struct Tensor(Rc<Inner>);

struct Inner {
    storage: Rc<Storage>,
    layout: Layout,
    dtype: DType,
    edge: Option<Edge>,
    /// A view of another tensor: never cached by autocast.
    view: bool,
}

/// Memory that views share; gives its block back when the last of them goes.
pub(in crate::tape) struct Storage {
    core: Rc<Core>,
    block: Option<u32>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(block) = self.block.filter(|_| !self.core.closed.get()) {
            self.core.push(Event::free(block));
        }
    }
}

impl Core {
    fn push(&self, event: Event) {
        let mut trace = self.trace.borrow_mut();
        if self.setting_up.get() {
            trace.setup.push(event);
        } else {
            trace.events.push(event);
        }
    }

    pub(in crate::tape) fn block(
        self: &Rc<Self>,
        op: &'static str,
        bytes: u64,
        category: Category,
    ) -> Storage {
        if bytes == 0 || self.muted.get() {
            return Storage {
                core: self.clone(),
                block: None,
            };
        }
        let block = {
            let mut trace = self.trace.borrow_mut();
            trace.blocks.push(Block {
                bytes,
                category,
                scope: self.scope.get(),
                op,
                copies: 1,
                carried: false,
            });
            trace.blocks.len() as u32 - 1
        };
        self.push(Event::alloc(block));
        Storage {
            core: self.clone(),
            block: Some(block),
        }
    }

    pub(in crate::tape) fn tensor(
        self: &Rc<Self>,
        op: &'static str,
        bytes: u64,
        layout: Layout,
        dtype: DType,
        category: Category,
    ) -> Tensor {
        Tensor(Rc::new(Inner {
            storage: Rc::new(self.block(op, bytes, category)),
            layout,
            dtype,
            edge: None,
            view: false,
        }))
    }
}

impl Tensor {
    pub fn tape(&self) -> Tape {
        Tape(self.0.storage.core.clone())
    }
    pub(in crate::tape) fn core(&self) -> &Rc<Core> {
        &self.0.storage.core
    }
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }
    pub fn shape(&self) -> &Dims {
        &self.0.layout.shape
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
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }
    pub fn numel(&self) -> u64 {
        self.0.layout.numel()
    }
    pub fn bytes(&self) -> u64 {
        self.numel().saturating_mul(self.dtype().bytes())
    }
    pub fn requires_grad(&self) -> bool {
        self.0.edge.is_some()
    }
    pub(in crate::tape) fn edge(&self) -> Option<Edge> {
        self.0.edge.clone()
    }
    pub(in crate::tape) fn is_view(&self) -> bool {
        self.0.view
    }
    pub(in crate::tape) fn node(&self) -> Option<&Rc<Node>> {
        self.0.edge.as_ref().map(|edge| &edge.node)
    }
    /// A name for the storage that no other living storage has.
    pub(in crate::tape) fn storage_id(&self) -> Option<u32> {
        self.0.storage.block
    }
    /// Whether nobody else holds this memory, so that a sum may be written into it. A view never is alone:
    /// it holds its base (`can_accumulate_inplace` in input_buffer.cpp).
    pub(in crate::tape) fn is_sole_owner(&self) -> bool {
        !self.0.view && self.is_last_handle() && Rc::strong_count(&self.0.storage) == 1
    }
    /// Whether this is the last handle on the tensor, whoever else shares its memory.
    pub(in crate::tape) fn is_last_handle(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
    pub fn set_category(&self, category: Category) {
        if let Some(block) = self.0.storage.block
            && let Some(block) = self
                .core()
                .trace
                .borrow_mut()
                .blocks
                .get_mut(block as usize)
        {
            block.category = category;
        }
    }

    /// Uses this tensor once and lets it go, as Python does with the parts of an expression.
    /// (A Rust temporary would live to the end of its statement.)
    pub fn then<T>(self, body: impl FnOnce(&Self) -> T) -> T {
        body(&self)
    }

    /// The same memory seen otherwise, without history.
    pub(in crate::tape) fn alias(&self, layout: Layout) -> Self {
        Self(Rc::new(Inner {
            storage: self.0.storage.clone(),
            layout,
            dtype: self.0.dtype,
            edge: None,
            view: true,
        }))
    }

    /// The same tensor in another shape, as a kernel would have made it: no view of anything.
    pub(in crate::tape) fn shaped(&self, layout: Layout) -> Self {
        Self(Rc::new(Inner {
            storage: self.0.storage.clone(),
            layout,
            dtype: self.0.dtype,
            edge: None,
            view: false,
        }))
    }

    /// The same memory without history: `detach()`.
    pub fn detach(&self) -> Self {
        self.alias(self.0.layout)
    }

    /// The same tensor with another history; an in-place operation returns this.
    pub(in crate::tape) fn with_edge(&self, edge: Option<Edge>) -> Self {
        let Inner {
            storage,
            layout,
            dtype,
            view,
            ..
        } = &*self.0;
        Self(Rc::new(Inner {
            storage: storage.clone(),
            layout: *layout,
            dtype: *dtype,
            edge,
            view: *view,
        }))
    }

    /// `with_edge` for a tensor nobody else holds yet, which spares an allocation.
    pub(in crate::tape) fn given_edge(mut self, edge: Edge) -> Self {
        match Rc::get_mut(&mut self.0) {
            Some(inner) => {
                inner.edge = Some(edge);
                self
            }
            None => self.with_edge(Some(edge)),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:?}", self.dtype(), self.shape())
    }
}
