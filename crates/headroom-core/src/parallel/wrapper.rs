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

/// Something around a model's modules. Parameters that it divides are constructed without memory.
pub trait Wrapper: fmt::Debug {
    /// Whether parameters are constructed without memory, which the wrapper then gives them.
    fn shards_params(&self) -> bool {
        false
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

    /// Whether a checkpoint around the call of a module, and not in it, runs the wrapper again too.
    fn runs_in_checkpoints(&self) -> bool {
        false
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

    /// The weights are copied out (to vLLM): gathers the shards one parameter at a time.
    fn gather_for_export(&self) {}

    /// Whether this rank has the parameters that an optimizer steps.
    fn has_trainable_params(&self) -> bool {
        true
    }

    /// How many ranks' samples are loaded onto this one.
    fn ranks_loaded_here(&self) -> u64 {
        1
    }

    /// A micro-batch begins; `last`: its backward completes the gradients of the step.
    fn before_pass(&self, _last: bool) {}

    /// What the wrapper queued for the end of backward (`queue_callback` of the engine).
    fn after_backward(&self) {}

    /// The type in which it has modules compute, where it casts weights by itself and scripts use no autocast.
    fn casts(&self) -> Option<DType> {
        None
    }

    /// Whether a script's autocast stays in force in the model.
    fn keeps_autocast(&self) -> bool {
        self.casts().is_none()
    }

    /// A pipeline gathers the parameters of a stage, whose model has this scope, frees them, and reduces its gradients once
    /// they are complete.
    fn unshard_stage(&self, _stage: Scope) {}
    fn reshard_stage(&self, _stage: Scope) {}
    fn reduce_stage(&self, _stage: Scope) {}

    /// Whether it takes the norm of the gradients by itself, and a script clips none.
    fn clips(&self) -> bool {
        false
    }

    /// Pinned host memory of this rank, in bytes.
    fn pinned(&self) -> u64 {
        0
    }

    /// The optimizer is about to step, and has stepped.
    fn before_step(&self) {}
    fn after_step(&self) {}

    /// Whether a step does what the one before it did, from the third on.
    fn repeats(&self) -> bool {
        true
    }

    /// Whether it treats equal layers equally, so that they may be run once for all.
    fn folds(&self) -> bool {
        true
    }
}

/// No wrapper: one GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwrapped;

impl Wrapper for Unwrapped {}
