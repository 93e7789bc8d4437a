//! The one way to change the ambient state of operations for a while.

use std::rc::Rc;

use super::core::SavedTensorHook;
use super::{DType, Mode, Param, Scope, Stream, Tape};

impl Tape {
    /// The current mode.
    pub fn mode(&self) -> Mode {
        self.0.ambient.mode.get()
    }

    /// Runs `body` in a mode and restores the mode before it.
    pub fn within<T>(&self, mode: Mode, body: impl FnOnce() -> T) -> T {
        let outer = self.0.ambient.mode.replace(mode);
        let result = body();
        self.0.ambient.mode.set(outer);
        result
    }

    /// `torch.cuda.stream(stream)`.
    pub fn on<T>(&self, stream: Stream, body: impl FnOnce() -> T) -> T {
        let mode = self.mode();
        self.within(Mode { stream, ..mode }, body)
    }

    /// `torch.device("meta")`: parameters created in `body` have no memory.
    pub fn on_meta<T>(&self, body: impl FnOnce() -> T) -> T {
        let mode = self.mode();
        self.within(Mode { meta: true, ..mode }, body)
    }

    /// `torch.no_grad()`.
    pub fn no_grad<T>(&self, body: impl FnOnce() -> T) -> T {
        self.within(self.mode().no_grad(), body)
    }

    /// `torch.autocast(dtype=...)`; without a dtype, nothing. The outermost region clears the cache of cast weights.
    pub fn autocast<T>(&self, dtype: Option<DType>, body: impl FnOnce() -> T) -> T {
        if dtype.is_none() {
            return body();
        }
        let outer = self.mode();
        let result = self.within(outer.with_autocast(dtype), body);
        if outer.autocast.is_none() {
            self.0.autograd.cast_cache.take();
        }
        result
    }

    /// `torch.autocast(enabled=False)`.
    pub fn without_autocast<T>(&self, body: impl FnOnce() -> T) -> T {
        self.within(self.mode().with_autocast(None), body)
    }

    /// Runs `body` as set-up, which allocates before the first step: weights, buffers, averages.
    pub fn setting_up<T>(&self, body: impl FnOnce() -> T) -> T {
        self.within(self.mode().in_setup(), body)
    }

    /// The declaration pass: traces a forward function once, as Flax's `init` does, to create what its modules' constructors
    /// create. Operations only compute shapes: nothing is allocated, launched, saved or recorded, and there is no graph, so
    /// checkpoints and offload do nothing. Creating parameters and buffers fills the set-up events.
    /// Returns the parameters and buffers in the order of the constructors.
    pub fn declare(&self, forward: impl FnOnce()) -> Vec<Rc<Param>> {
        let mode = Mode {
            declaring: true,
            ..self.mode().no_grad()
        };
        self.within(mode, forward);
        self.0.construction.params.take()
    }

    pub(crate) fn declaring(&self) -> bool {
        self.mode().declaring
    }

    /// Turns recording of what runs off (`true`), so that it only computes shapes, or on again. Returns the previous state.
    pub fn set_shapes_only(&self, on: bool) -> bool {
        self.0.ambient.shapes_only.replace(on)
    }

    /// Whether what runs is not recorded.
    pub fn shapes_only(&self) -> bool {
        self.0.ambient.shapes_only.get()
    }

    /// `torch.is_grad_enabled()`.
    pub fn grad_enabled(&self) -> bool {
        self.mode().grad
    }

    pub(crate) fn autocast_dtype(&self) -> Option<DType> {
        self.mode().autocast
    }

    /// `not module.training`, which dropout, drop paths and transformers' layer checkpoints look at.
    pub fn evaluating(&self) -> bool {
        self.mode().evaluating
    }

    /// `model.eval()` or `model.train()`.
    pub fn evaluate(&self, evaluating: bool) {
        self.0.ambient.mode.set(Mode {
            evaluating,
            ..self.mode()
        });
    }

    pub(crate) fn scope(&self) -> Scope {
        self.mode().scope
    }

    /// Makes `scope` the module that new memory belongs to; returns the previous one.
    pub fn enter(&self, scope: Scope) -> Scope {
        let outer = self.mode();
        self.0.ambient.mode.set(Mode { scope, ..outer });
        outer.scope
    }

    /// Runs `body` with a hook that decides where saved tensors are kept (`torch.autograd.graph.saved_tensors_hooks`); the
    /// innermost hook applies.
    pub(in crate::tape) fn with_saved_tensor_hook<T>(
        &self,
        hook: Rc<dyn SavedTensorHook>,
        body: impl FnOnce() -> T,
    ) -> T {
        self.0.autograd.hooks.borrow_mut().push(hook);
        let result = body();
        self.0.autograd.hooks.borrow_mut().pop();
        result
    }

    /// Runs `body` without the hooks around it: what it saves stays where it is (`NoOpManager` of torchtune).
    pub fn keeping_what_is_saved<T>(&self, body: impl FnOnce() -> T) -> T {
        let outer = self.0.autograd.hooks.take();
        let result = body();
        self.0.autograd.hooks.replace(outer);
        result
    }

    /// Runs `body`, which builds a graph and consumes it. What that graph holds is freed with it, weights are cast again, and a
    /// recomputation that stops early inside stops only this.
    pub(in crate::tape) fn in_inner_graph<T>(&self, body: impl FnOnce() -> T) -> T {
        let core = &self.0;
        let outer_casts = core.autograd.cast_cache.take();
        let outer_stopped = core.ambient.stopped.get();
        let held_outside = core.autograd.contexts.borrow().len();
        let result = body();
        let held_inside = {
            let mut held = core.autograd.contexts.borrow_mut();
            let outside = held_outside.min(held.len());
            held.split_off(outside)
        };
        drop(held_inside);
        core.ambient.stopped.set(outer_stopped);
        core.autograd.cast_cache.replace(outer_casts);
        result
    }
}
