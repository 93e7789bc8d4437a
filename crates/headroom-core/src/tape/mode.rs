//! The ambient state of operations, and the one way to change it for a while.

use std::rc::Rc;

use super::checkpoint::SavedTensorHook;
use super::{DType, Param, Scope, Tape};

/// A CUDA stream; the allocator has a pool for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream(u8);

impl Stream {
    /// The stream that a program computes on.
    pub const COMPUTE: Self = Self(0);

    /// A side stream, by its number.
    pub const fn side(number: u8) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What PyTorch keeps per thread (`at::ThreadLocalState`) and modules keep as `training`, with the place on the tape that
/// new memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of PyTorch's own, set by itself"
)]
pub struct Mode {
    /// `torch.is_grad_enabled()`.
    pub grad: bool,
    /// The dtype of the `torch.autocast` region; `None` outside one and where it is disabled.
    pub autocast: Option<DType>,
    /// `not module.training`.
    pub evaluating: bool,
    /// Memory exists before the first step.
    pub setup: bool,
    /// Parameters are created without memory (`torch.device("meta")`).
    pub meta: bool,
    /// The stream that new memory belongs to.
    pub stream: Stream,
    /// The declaration pass: operations only compute shapes, and only what constructors create takes effect.
    pub declaring: bool,
    /// The module that new memory belongs to.
    pub scope: Scope,
}

impl Default for Mode {
    fn default() -> Self {
        Self {
            grad: true,
            autocast: None,
            evaluating: false,
            setup: false,
            meta: false,
            stream: Stream::COMPUTE,
            declaring: false,
            scope: Scope::default(),
        }
    }
}

impl Mode {
    pub const fn no_grad(self) -> Self {
        Self {
            grad: false,
            ..self
        }
    }

    pub const fn with_autocast(self, autocast: Option<DType>) -> Self {
        Self { autocast, ..self }
    }

    pub const fn in_setup(self) -> Self {
        Self {
            setup: true,
            ..self
        }
    }
}

impl Tape {
    /// The current mode.
    pub fn mode(&self) -> Mode {
        self.0.mode.get()
    }

    /// Runs `body` in a mode and restores the mode before it.
    pub fn within<T>(&self, mode: Mode, body: impl FnOnce() -> T) -> T {
        let outer = self.0.mode.replace(mode);
        let result = body();
        self.0.mode.set(outer);
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
            self.0.cast_cache.take();
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
        self.0.params.take()
    }

    pub fn declaring(&self) -> bool {
        self.mode().declaring
    }

    /// Turns recording of what runs off (`true`), so that it only computes shapes, or on again. Returns the previous state.
    pub fn leave_out(&self, out: bool) -> bool {
        self.0.left_out.replace(out)
    }

    /// Whether what runs is not recorded.
    pub fn leaves_out(&self) -> bool {
        self.0.left_out.get()
    }

    /// `torch.is_grad_enabled()`.
    pub fn grad_enabled(&self) -> bool {
        self.mode().grad
    }

    pub fn autocast_dtype(&self) -> Option<DType> {
        self.mode().autocast
    }

    /// `not module.training`, which dropout, drop paths and transformers' layer checkpoints look at.
    pub fn evaluating(&self) -> bool {
        self.mode().evaluating
    }

    /// `model.eval()` or `model.train()`.
    pub fn evaluate(&self, evaluating: bool) {
        self.0.mode.set(Mode {
            evaluating,
            ..self.mode()
        });
    }

    pub fn scope(&self) -> Scope {
        self.mode().scope
    }

    /// Makes `scope` the module that new memory belongs to; returns the previous one.
    pub fn enter(&self, scope: Scope) -> Scope {
        let outer = self.mode();
        self.0.mode.set(Mode { scope, ..outer });
        outer.scope
    }

    /// Runs `body` with a hook that decides where saved tensors are kept (`torch.autograd.graph.saved_tensors_hooks`); the
    /// innermost hook applies.
    pub(in crate::tape) fn with_saved_tensor_hook<T>(
        &self,
        hook: SavedTensorHook,
        body: impl FnOnce() -> T,
    ) -> T {
        self.0.hooks.borrow_mut().push(hook);
        let result = body();
        self.0.hooks.borrow_mut().pop();
        result
    }

    /// Runs `body` without the hooks around it: what it saves stays where it is (`NoOpManager` of torchtune).
    pub fn keeping_what_is_saved<T>(&self, body: impl FnOnce() -> T) -> T {
        let outer = self.0.hooks.take();
        let result = body();
        self.0.hooks.replace(outer);
        result
    }

    /// Runs `body`, which builds a graph and consumes it. What that graph holds is freed with it, weights are cast again, and a
    /// recomputation that stops early inside stops only this.
    pub(in crate::tape) fn in_inner_graph<T>(&self, body: impl FnOnce() -> T) -> T {
        let core = &self.0;
        let outer_casts = core.cast_cache.take();
        let outer_stopped = core.stopped.get();
        let held_outside = core.contexts.borrow().len();
        let result = body();
        let held_inside = {
            let mut held = core.contexts.borrow_mut();
            let outside = held_outside.min(held.len());
            held.split_off(outside)
        };
        drop(held_inside);
        core.stopped.set(outer_stopped);
        core.cast_cache.replace(outer_casts);
        result
    }
}
