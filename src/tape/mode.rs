//! The state that operations read from their surroundings, and the one way to change it for a while.

use std::rc::Rc;

use super::checkpoint::SavedTensorHook;
use super::{DType, Param, Scope, Tape};

/// A stream of the device, in whose pool the allocator finds memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream(u8);

impl Stream {
    /// The one that a program computes on.
    pub const COMPUTE: Self = Self(0);

    /// One beside it, by a number of its own.
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
    /// The type of the `torch.autocast` region; none outside of one and where it is switched off.
    pub autocast: Option<DType>,
    /// `not module.training`.
    pub evaluating: bool,
    /// Memory exists before the first step.
    pub setup: bool,
    /// Parameters are made without memory (`torch.device("meta")`).
    pub meta: bool,
    /// The stream that new memory belongs to.
    pub stream: Stream,
    /// A model is being constructed: operations only give shapes, and only what constructors make takes effect.
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
    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.0.mode.get()
    }

    /// Runs `body` in a mode; afterwards the mode before is in force again.
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

    /// `torch.device("meta")`: parameters that are made in `body` have no memory.
    pub fn on_meta<T>(&self, body: impl FnOnce() -> T) -> T {
        let mode = self.mode();
        self.within(Mode { meta: true, ..mode }, body)
    }

    /// `torch.no_grad()`.
    pub fn no_grad<T>(&self, body: impl FnOnce() -> T) -> T {
        self.within(self.mode().no_grad(), body)
    }

    /// `torch.autocast(dtype=...)`; nothing where there is no type. The cache of cast weights goes with the outermost region.
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

    /// Runs `body` with memory that exists before the first step: weights, buffers, averages.
    pub fn setting_up<T>(&self, body: impl FnOnce() -> T) -> T {
        self.within(self.mode().in_setup(), body)
    }

    /// The declaration pass: goes once through a forward function as Flax's `init` does, for what its modules' constructors
    /// make. Operations only give shapes: nothing is allocated, launched, saved or noted, and there is no graph, so that
    /// checkpoints and offload do nothing. Parameters, buffers and what comes and goes with them fill the set-up list.
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

    /// Leaves out what runs from now on, or no more: it only gives shapes. Returns whether it was left out before.
    pub fn leave_out(&self, out: bool) -> bool {
        self.0.left_out.replace(out)
    }

    /// Whether what runs is left out.
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

    /// `not module.training`: dropout, drop paths and the checkpoints of transformers' layers ask for it.
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

    /// Makes `scope` the one that new memory belongs to; returns the one before.
    pub fn enter(&self, scope: Scope) -> Scope {
        let outer = self.mode();
        self.0.mode.set(Mode { scope, ..outer });
        outer.scope
    }

    /// Runs `body` with a hook that decides where saved tensors are kept (`torch.autograd.graph.saved_tensors_hooks`): the
    /// innermost counts.
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

    /// Runs `body`, which makes a graph and uses it up. What that graph holds goes with it, weights are cast anew, and a
    /// recomputation that stops early stops no more than this.
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
