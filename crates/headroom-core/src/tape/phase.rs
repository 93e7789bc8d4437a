//! The phases of a run.

use serde::Serialize;

/// The phases of a training step.
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
    /// Loading a checkpoint's weights next to the model's own when a run is resumed.
    Resume,
}
