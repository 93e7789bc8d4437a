//! The groups of GPUs that share the work of a model.

use std::rc::Rc;

use super::Stages;
use headroom_scenario::ContextParallel;

/// The groups that one GPU is in.
#[derive(Clone, Debug)]
pub struct Groups {
    pub tensor: TensorParallel,
    pub context: Context,
    /// GPUs over which the experts of a layer are divided.
    pub experts: u64,
    pub stages: Rc<Stages>,
}

impl Default for Groups {
    /// One GPU alone.
    fn default() -> Self {
        Self {
            tensor: TensorParallel::ALONE,
            context: Context::ALONE,
            experts: 1,
            stages: Rc::default(),
        }
    }
}

/// The group of GPUs that share sequences.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// How many GPUs are in it.
    pub group: u64,
    pub attention: ContextParallel,
}

impl Context {
    /// Sequences are not split.
    pub const ALONE: Self = Self {
        group: 1,
        attention: ContextParallel::Ring,
    };
}

/// How a module's weight is split, or its input laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// `ColwiseParallel`: each GPU computes a part of the output's features.
    Columns,
    /// `RowwiseParallel`: each has a part of the input's features; the products are summed.
    Rows,
    /// `RowwiseParallel` of an embedding: each has a part of the table's rows; what they find is summed.
    Vocabulary,
    /// `ColwiseParallel` of the head: all logits are gathered unless the loss is split too.
    Head,
    /// `PrepareModuleInput`: the module is given all tokens where its GPUs have a part of them.
    GatherSequence,
}

/// The modules that are split, by name.
pub(crate) type Plan = &'static [(&'static str, Split)];

/// The tensor-parallel group of a run.
#[derive(Clone, Copy, Debug)]
pub struct TensorParallel {
    pub plan: Plan,
    /// How many GPUs are in it.
    pub group: u64,
    /// Norms and residuals see a part of the tokens on each GPU (`SequenceParallel`).
    pub sequence: bool,
    /// The loss is computed of a part of the logits on each GPU (`loss_parallel`).
    pub loss: bool,
}

impl TensorParallel {
    /// One GPU has all.
    pub const ALONE: Self = Self {
        plan: &[],
        group: 1,
        sequence: false,
        loss: false,
    };
}
