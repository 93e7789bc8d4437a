//! The phases of a run.

use serde::Serialize;

/// The part of a training step in which an instant lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    #[default]
    Setup,
    Forward,
    Backward,
    Optimizer,
    /// Completions are sampled from the model, before the forward that learns from them.
    Generation,
    /// Passes of models that are not trained: a reference, a teacher, a reward model.
    Reference,
    /// A forward pass without gradients, between steps.
    Evaluation,
    /// A checkpoint's weights alongside the model's own, when a run is resumed.
    Resume,
}
