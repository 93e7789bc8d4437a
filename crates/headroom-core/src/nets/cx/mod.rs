//! `Cx`, the context of a forward function: module path, parameters and run settings.

mod checkpoint;
mod context;
mod env;
mod groups;
mod layers;
mod params;
mod split;
mod stage;
mod stages;

use std::rc::Rc;

use crate::parallel::{Role, Wrapper};
use crate::tape::{DType, Scope, Tape, Tensor};
pub use checkpoint::Region;
pub use env::Env;
pub(crate) use groups::{Context, Plan, Split, TensorParallel};
use headroom_scenario::{Compile, CompileMode, Training};
pub(crate) use stages::{Stage, Stages};

/// A module's view of the run.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of the module that is open what it is in, by itself"
)]
pub struct Cx {
    /// Where operations are recorded.
    pub tape: Tape,
    /// How the network is run; shared by all its modules.
    pub env: Rc<Env>,
    scope: Scope,
    /// The module is frozen, whatever its path.
    frozen: bool,
    /// It checkpoints in evaluation mode too.
    in_any_mode: bool,
    /// The last blocks of a list, whose frozen weights wait on the host.
    swapped: u64,
    /// The module is in such a block.
    on_host: bool,
    /// The module is in a checkpointed segment of several layers.
    in_segment: bool,
}

impl Cx {
    /// The context of the module that the tape is in, at first the model itself.
    pub fn new(tape: Tape, env: Rc<Env>) -> Self {
        let scope = tape.scope();
        Self {
            tape,
            env,
            scope,
            frozen: false,
            in_any_mode: false,
            swapped: 0,
            on_host: false,
            in_segment: false,
        }
    }

    /// The same place in a part of the model that is kept and trained by rules of its own.
    pub fn part(&self, weights: DType, change: impl FnOnce(&mut Training)) -> Self {
        let mut env = (*self.env).clone();
        env.weights = weights;
        change(&mut env.training);
        Self {
            env: Rc::new(env),
            ..self.clone()
        }
    }

    /// The same place with another wrapper around its modules.
    pub fn with_wrapper(&self, wrapper: Rc<dyn Wrapper>) -> Self {
        let env = Env {
            wrapper,
            ..(*self.env).clone()
        };
        Self {
            env: Rc::new(env),
            ..self.clone()
        }
    }

    /// Binds the script's names to what the model has returned, where it keeps them: what they stood for a step before
    /// goes now, before the loss.
    pub fn bind(&self, outputs: &[Tensor]) {
        if self.env.training.keep_outputs && !self.tape.declaring() {
            let before = self.env.shared.loop_variables.replace(outputs.to_vec());
            drop(before);
        }
    }

    /// Runs a compiled region in the run's mode.
    pub(in crate::nets) fn compiled(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        let budget = self.env.training.memory_budget;
        let run = || {
            if budget <= 0.0 {
                self.tape.compiled_to_recompute(body)
            } else if budget < 1.0 {
                self.tape.compiled_within(body, budget)
            } else {
                self.tape.compiled(body)
            }
        };
        match self.env.training.compile_mode {
            CompileMode::Default => run(),
            CompileMode::ReduceOverhead => self.tape.in_graph_pool(run),
        }
    }

    /// A loss, compiled if the trainer compiles it together with the layers.
    pub fn compiled_loss(&self, loss: impl Fn() -> Tensor) -> Tensor {
        let layers = self.env.training.compile == Compile::Layers;
        if !layers || !self.env.libraries.compiles_loss {
            return loss();
        }
        let outputs = self.compiled(&|| vec![loss()]);
        outputs.into_iter().next().unwrap_or_else(loss)
    }

    /// Runs `body` as the model that is wrapped.
    pub fn as_model(
        &self,
        inputs: Vec<Tensor>,
        body: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.env
            .wrapper
            .module(Role::Model, self.scope, inputs, body)
    }

    /// Runs `body` as the experts of a layer.
    pub fn as_experts(
        &self,
        inputs: Vec<Tensor>,
        body: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.env.shared.divides_experts.set(true);
        self.env
            .wrapper
            .module(Role::Experts, self.scope, inputs, body)
    }

    /// The output of a linear layer's base weight, after the wrapper's post-forward hook.
    pub(in crate::nets) fn post_linear(&self, output: Tensor) -> Tensor {
        self.env.wrapper.post_linear(self.scope, output)
    }

    /// Runs `body` under the autocast of the run, where it has one.
    pub fn autocast<T>(&self, body: impl FnOnce() -> T) -> T {
        self.tape.autocast(self.env.autocast, body)
    }

    /// Runs `body` as the child module `name`.
    pub fn module<T>(&self, name: &'static str, body: impl FnOnce(&Self) -> T) -> T {
        self.inside(name, None, body)
    }

    /// Runs `body`, which enters the child module `name` by itself, as what it is to a wrap policy.
    pub fn as_role(
        &self,
        role: Role,
        name: &'static str,
        input: &Tensor,
        body: impl Fn(&Tensor) -> Tensor,
    ) -> Tensor {
        let scope = self.tape.scope_in(self.scope, name, None);
        let run = |given: Vec<Tensor>| given.iter().map(&body).collect();
        let outputs = self
            .env
            .wrapper
            .module(role, scope, vec![input.clone()], &run);
        outputs.into_iter().next().unwrap_or_else(|| input.clone())
    }

    /// Runs `body` as the module `name.index` of a list.
    pub fn list_item<T>(
        &self,
        name: &'static str,
        index: usize,
        body: impl FnOnce(&Self) -> T,
    ) -> T {
        self.inside(name, Some(index as u32), body)
    }

    /// Runs `body` as a child module whose name comes from outside the program.
    pub fn module_named<T>(&self, name: &str, body: impl FnOnce(&Self) -> T) -> T {
        let scope = self.tape.named_scope_in(self.scope, name);
        let outer = self.tape.enter(scope);
        let result = body(&Self {
            scope,
            ..self.clone()
        });
        self.tape.enter(outer);
        result
    }

    /// The model itself, for what its modules share.
    pub fn root(&self) -> Self {
        Self {
            scope: Scope::default(),
            ..self.clone()
        }
    }

    /// The most outputs and inputs of any adapted layer, as the model said, or at least these.
    pub fn widest(&self, least: [u64; 2]) -> [u64; 2] {
        let [outputs, inputs] = self.env.shared.widest.get();
        [outputs.max(least[0]), inputs.max(least[1])]
    }

    /// This module with its parameters frozen.
    pub fn frozen(&self) -> Self {
        Self {
            frozen: true,
            ..self.clone()
        }
    }

    /// This module where it checkpoints whatever the mode, as those of diffusers and timm do: they ask whether gradients are
    /// wanted at all.
    pub fn checkpointing_in_any_mode(&self) -> Self {
        Self {
            in_any_mode: true,
            ..self.clone()
        }
    }

    /// This module, of whose lists the last blocks' frozen weights wait on the host.
    pub fn swapping(&self, blocks: u64) -> Self {
        Self {
            swapped: blocks,
            ..self.clone()
        }
    }

    /// This module for the block at this index of a list of so many.
    pub fn of_block(&self, index: u64, count: u64) -> Self {
        // One block at least is here, for the others to take its place.
        let waits = index > 0 && index.saturating_add(self.swapped) >= count;
        Self {
            on_host: self.on_host || waits,
            swapped: 0,
            ..self.clone()
        }
    }

    /// Whether frozen weights made here wait on the host.
    pub(in crate::nets) fn is_on_host(&self) -> bool {
        self.on_host && self.env.training.lora.is_some()
    }

    fn inside<T>(
        &self,
        name: &'static str,
        index: Option<u32>,
        body: impl FnOnce(&Self) -> T,
    ) -> T {
        let (child, outer) = self.entered(name, index);
        let result = body(&child);
        self.tape.enter(outer);
        result
    }

    /// The child module, which new memory now belongs to, and the module it belonged to before.
    #[inline(never)]
    fn entered(&self, name: &'static str, index: Option<u32>) -> (Self, Scope) {
        let scope = self.tape.scope_in(self.scope, name, index);
        let outer = self.tape.enter(scope);
        let child = Self {
            scope,
            ..self.clone()
        };
        (child, outer)
    }

    pub(crate) fn path(&self) -> String {
        self.tape.path(self.scope)
    }

    /// The rate of a dropout layer: none when dropout is switched off.
    pub fn rate(&self, p: f64) -> f64 {
        if self.env.training.dropout && !self.tape.evaluating() {
            p
        } else {
            0.0
        }
    }
}
