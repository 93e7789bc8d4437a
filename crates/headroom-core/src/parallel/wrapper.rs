//! The `Wrapper` trait: what DDP, FSDP or ZeRO allocate and do around a model's modules.

use std::fmt;
use std::rc::Rc;

use crate::tape::{DType, Param, Scope, Tape, Tensor};

/// What a module is to a wrap policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The whole model.
    Model,
    /// `get_input_embeddings()`.
    InputEmbedding,
    /// An item of a list of layers.
    Layer,
    /// The experts of a layer, where they are divided over GPUs.
    Experts,
    /// The norm between the last layer and the head.
    FinalNorm,
    /// `get_output_embeddings()`.
    Head,
}

/// The forward function of a module: inputs to outputs.
pub(crate) type Forward<'a> = dyn Fn(Vec<Tensor>) -> Vec<Tensor> + 'a;

/// What a wrapper changes of a run.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct Properties {
    /// Parameters are constructed without memory, which the wrapper then gives them.
    pub shards_params: bool,
    /// This rank has the parameters that an optimizer steps.
    pub has_trainable_params: bool,
    /// How many ranks' samples are loaded onto this one.
    pub ranks_loaded_here: u64,
    /// The dtype in which it has modules compute, where it casts weights itself and scripts use no autocast.
    pub compute_dtype: Option<DType>,
    /// A script's autocast stays in force in the model.
    pub keeps_autocast: bool,
    /// It computes the norm of the gradients itself, and a script clips none.
    pub clips: bool,
    /// A checkpoint around the call of a module, and not in it, runs the wrapper again too.
    pub runs_in_checkpoints: bool,
    /// It treats equal layers equally, so that they may be run once for all.
    pub folds: bool,
    /// From the third on, a step does what the one before it did.
    pub repeats: bool,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            shards_params: false,
            has_trainable_params: true,
            ranks_loaded_here: 1,
            compute_dtype: None,
            keeps_autocast: true,
            clips: false,
            runs_in_checkpoints: false,
            folds: true,
            repeats: true,
        }
    }
}

/// DDP, FSDP, ZeRO or another wrapper of a model and its modules.
pub trait Wrapper: fmt::Debug {
    /// What it changes of a run, whatever the modules.
    fn properties(&self) -> Properties {
        Properties::default()
    }

    /// Wraps a constructed model; returns the parameters and buffers as the optimizer sees them.
    fn wrap(&self, _tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        state
    }

    /// The wrapper of a frozen reference or teacher model. `None`: it is wrapped as a submodule of the trained one.
    fn for_reference_model(&self) -> Option<Rc<dyn Wrapper>> {
        None
    }

    /// A module that may be a unit of the wrapper's runs: its inputs to its outputs. The construction calls it too.
    fn module(
        &self,
        _role: Role,
        _scope: Scope,
        inputs: Vec<Tensor>,
        run: &Forward,
    ) -> Vec<Tensor> {
        run(inputs)
    }

    /// Forward code takes a parameter of the module that it is in.
    fn uses(&self, _param: &Param) {}

    /// A linear layer has computed its output, before an adapter adds to it.
    fn post_linear(&self, _scope: Scope, output: Tensor) -> Tensor {
        output
    }

    /// A head's weight for code outside of the head's own forward, gathered where it is a shard (`DTensor.full_tensor`).
    fn full_tensor(&self, weight: &dyn Fn() -> Rc<Param>) -> Tensor {
        weight().tensor()
    }

    /// The weights are copied out (to vLLM): gathers the shards one parameter at a time. `merges`: adapters are added to the weights
    /// first, and taken off again.
    fn gather_for_export(&self, _merges: bool) {}

    /// A micro-batch begins; `last`: its backward completes the gradients of the step.
    fn before_pass(&self, _last: bool) {}

    /// What the wrapper queued for the end of backward (`queue_callback` of the engine).
    fn after_backward(&self) {}

    /// What a stage that is not the last hands on, whose model has this scope.
    fn stage_outputs(&self, _stage: Scope, outputs: Vec<Tensor>) -> Vec<Tensor> {
        outputs
    }

    /// A pipeline gathers the parameters of a stage, whose model has this scope, frees them, and reduces its gradients once
    /// they are complete.
    fn unshard_stage(&self, _stage: Scope) {}
    fn reshard_stage(&self, _stage: Scope) {}
    fn reduce_stage(&self, _stage: Scope) {}

    /// Pinned host memory of this rank, in bytes.
    fn pinned(&self) -> u64 {
        0
    }

    /// The optimizer is about to step, and has stepped.
    fn before_step(&self) {}
    fn after_step(&self) {}
}

/// No wrapper: one GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwrapped;

impl Wrapper for Unwrapped {}
