//! Parameters: leaf tensors with a place for their gradient.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::core::{Edge, Node};
use super::{Category, DType, Dims, Layout, Param, Tape, Tensor};

impl Param {
    /// How many parameters of equal layers it represents.
    pub fn copies(&self) -> u64 {
        self.fold.map_or(1, |fold| fold.times().into())
    }

    /// Whether it is a buffer of the model, not a parameter.
    pub fn is_buffer(&self) -> bool {
        self.count == 0
    }

    /// Whether it is not a parameter of the model but a tensor on which `requires_grad_()` was called.
    pub(in crate::tape) fn is_leaf_tensor(&self) -> bool {
        self.count == 0
    }

    /// Its storage. Sorted by this number, parameters are in the order of their first use in forward, whatever the order of
    /// their constructors.
    pub fn storage(&self) -> Option<u32> {
        self.data.storage_id()
    }

    /// The tensor as forward code sees it.
    pub fn tensor(&self) -> Tensor {
        if let Some(copy) = &*self.replica.borrow() {
            return copy.clone();
        }
        let data = match self.cast.get() {
            Some(dtype) => self.data.without_memory(dtype),
            None => self.data.clone(),
        };
        // The declaration pass makes no graph.
        if !self.trainable || data.core().ambient.mode.get().declaring {
            return data;
        }
        let living = self.node.borrow().as_ref().and_then(Weak::upgrade);
        let node = living.or_else(|| {
            let node = Node::leaf(self.this.upgrade()?);
            self.node.replace(Some(Rc::downgrade(&node)));
            Some(node)
        });
        data.with_edge(node.map(|node| Edge { node, output: 0 }))
    }

    /// The dtype in which forward code sees it.
    pub fn dtype(&self) -> DType {
        self.cast.get().unwrap_or(self.data.dtype())
    }

    /// Lets forward code see it in another dtype; a wrapper accounts for the memory of both.
    pub fn cast(&self, dtype: DType) {
        self.cast.set(Some(dtype));
    }
}

impl std::fmt::Debug for Param {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.name, self.data)
    }
}

/// A point in the order in which a model's parameters are constructed.
#[derive(Clone, Copy, Debug)]
pub struct ConstructionPoint {
    params: usize,
    setup: usize,
}

impl Tape {
    pub(crate) fn construction_point(&self) -> ConstructionPoint {
        ConstructionPoint {
            params: self.0.construction.params.borrow().len(),
            setup: self.0.trace.borrow().setup.len(),
        }
    }

    /// Moves what was constructed between two points to here: the constructor reaches that module later than forward does.
    /// Returns the point at which it now begins.
    pub fn construct_here(
        &self,
        from: ConstructionPoint,
        to: ConstructionPoint,
    ) -> ConstructionPoint {
        let params = to.params.saturating_sub(from.params);
        let now = self.construction_point();
        if params == 0 {
            return now;
        }
        if let Some(rest) = self
            .0
            .construction
            .params
            .borrow_mut()
            .get_mut(from.params..)
        {
            rest.rotate_left(params);
        }
        let events = self.allocate_before(from, to);
        ConstructionPoint {
            params: now.params - params,
            setup: now.setup - events,
        }
    }

    /// Allocates what was constructed since `to` before what was constructed between `from` and `to`, although the model lists
    /// it later: it was constructed outside and passed to the constructor. Returns how many events moved.
    pub fn allocate_before(&self, from: ConstructionPoint, to: ConstructionPoint) -> usize {
        let events = to.setup.saturating_sub(from.setup);
        let mut trace = self.0.trace.borrow_mut();
        let trace = &mut *trace;
        let later = trace.setup.len().saturating_sub(to.setup);
        if let Some(rest) = trace.setup.get_mut(from.setup..) {
            rest.rotate_left(events);
        }
        // Groups move with their events, and stay in order.
        let groups = &mut trace.setup_groups;
        let place = |point: usize| groups.partition_point(|group| group.start < point);
        let (first, next) = (place(from.setup), place(to.setup));
        for (i, group) in groups.iter_mut().enumerate().skip(first) {
            let length = group.end - group.start;
            group.start = if i < next {
                group.start + later
            } else {
                group.start - events
            };
            group.end = group.start + length;
        }
        if let Some(rest) = groups.get_mut(first..) {
            rest.rotate_left(next - first);
        }
        events
    }

    /// Runs `body` for each parameter; those of one folded row form a group.
    pub fn each<'a>(
        &self,
        params: impl IntoIterator<Item = &'a Rc<Param>>,
        body: impl FnMut(&'a Rc<Param>),
    ) {
        self.in_rows(params, |param| param.fold, false, body);
    }

    /// A parameter in the current scope; it exists before the first step.
    pub fn param(
        &self,
        name: &'static str,
        shape: impl Into<Dims>,
        dtype: DType,
        trainable: bool,
    ) -> Rc<Param> {
        self.param_with_layout(name, Layout::contiguous(shape), dtype, trainable)
    }

    /// The same with given strides.
    pub fn param_with_layout(
        &self,
        name: &'static str,
        layout: Layout,
        dtype: DType,
        trainable: bool,
    ) -> Rc<Param> {
        self.packed_param(
            name,
            layout,
            dtype,
            layout.numel().saturating_mul(dtype.bytes()),
            layout.numel(),
            trainable,
        )
    }

    /// The shard of a module's parameter that this rank trains, `bytes` large with its padding. It is not one of the model's own,
    /// and represents as many elements.
    pub fn shard(&self, of: &Param, layout: Layout, dtype: DType, bytes: u64) -> Rc<Param> {
        let data = self.parameter_memory(of.name, bytes, layout, dtype);
        self.leaf(data, of.name, of.count, of.trainable)
    }

    /// A parameter whose bytes are not its elements times their size, such as a quantised weight.
    pub fn packed_param(
        &self,
        name: &'static str,
        layout: Layout,
        dtype: DType,
        bytes: u64,
        count: u64,
        trainable: bool,
    ) -> Rc<Param> {
        let on_meta = self.mode().meta && count > 0;
        let bytes = if on_meta { 0 } else { bytes };
        let data = self.parameter_memory(name, bytes, layout, dtype);
        let count = count.saturating_mul(self.0.open.get().times().into());
        let param = self.leaf(data, name, count, trainable);
        if !self.0.ambient.shapes_only.get() {
            self.0.construction.params.borrow_mut().push(param.clone());
        }
        param
    }

    /// A master weight, which an optimizer steps instead of the model's parameters.
    pub fn master(
        &self,
        name: &'static str,
        layout: Layout,
        dtype: DType,
        bytes: u64,
        count: u64,
    ) -> Rc<Param> {
        let data = self.parameter_memory(name, bytes, layout, dtype);
        data.set_category(Category::OptimizerStates);
        self.leaf(data, name, count, true)
    }

    fn parameter_memory(
        &self,
        name: &'static str,
        bytes: u64,
        layout: Layout,
        dtype: DType,
    ) -> Tensor {
        self.setting_up(|| {
            self.0
                .tensor(name, bytes, layout, dtype, Category::Parameters)
        })
    }

    fn leaf(&self, data: Tensor, name: &'static str, count: u64, trainable: bool) -> Rc<Param> {
        Rc::new_cyclic(|this| Param {
            data,
            grad: RefCell::default(),
            scope: self.scope(),
            name,
            trainable,
            count,
            fold: self.0.open.get().fold(),
            post_accumulate_grad: RefCell::default(),
            replica: RefCell::default(),
            cast: Cell::new(None),
            fp32_states: Cell::new(false),
            node: RefCell::default(),
            this: this.clone(),
        })
    }
}

impl Tensor {
    /// The same tensor after `self.requires_grad = True`: its gradient accumulates on it and is freed with it.
    pub fn requires_grad_(&self) -> Tensor {
        if self.requires_grad() || self.core().ambient.mode.get().declaring {
            return self.clone();
        }
        self.as_leaf().tensor()
    }

    /// A leaf of the graph received from another rank's stage; its gradient accumulates on it.
    pub fn as_received(&self) -> Rc<Param> {
        self.as_leaf()
    }

    /// A leaf of the graph on this storage: gradients stop here.
    pub(in crate::tape) fn as_leaf(&self) -> Rc<Param> {
        self.tape().leaf(self.clone(), "leaf", 0, true)
    }
}
