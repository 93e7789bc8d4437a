//! The phases of a run.

use serde::Serialize;

/// The phases of a training step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before forward: the weights are created, or a step's batches are put on the device.
    #[default]
    Setup,
    /// A forward pass, with the loss.
    Forward,
    /// A backward pass, with what it recomputes.
    Backward,
    /// The optimizer update.
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
