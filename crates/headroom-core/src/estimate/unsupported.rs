//! Why there is no estimate.

use std::fmt;

use crate::nets::ModelError;
use headroom_scenario::Problem;

/// The reason why a scenario has no estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// `model.id` names no entry of the catalogue.
    UnknownModel(String),
    /// The model cannot be built, or does not run on such batches.
    Model(ModelError),
    /// A size that the model does not have.
    NoSize(String),
    /// The declared network is not valid.
    Network(Problem),
    /// The file of a recorded model is not valid.
    Recording(String),
    /// The recorded graph of the catalogue's model with this id is not loaded yet.
    GraphAbsent(&'static str),
    /// A setting that is not valid.
    Setting(Problem),
    /// No parameter is trainable: a run without gradients is no training run.
    NothingTrained(Problem),
    /// Its steps are too long to be simulated tensor by tensor.
    TooMuchWork,
    /// The GPU's memory is neither in the catalogue nor set.
    UnknownMemory,
    /// The speed of the GPU with this id is neither in the catalogue nor set.
    UnknownSpeed(String),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModel(id) => write!(f, "model.id: `{id}` is not in the catalogue"),
            Self::Model(error) => error.fmt(f),
            Self::Recording(problem) => write!(f, "the recorded model: {problem}"),
            Self::GraphAbsent(id) => write!(f, "the recorded graph of {id} is not loaded"),
            Self::NoSize(name) => write!(f, "the model has no size `{name}`"),
            Self::Network(problem) | Self::Setting(problem) => problem.fmt(f),
            Self::NothingTrained(problem) => write!(f, "nothing is trained: {problem}"),
            Self::TooMuchWork => f.write_str(
                "a step of this run creates too many tensors to simulate: use fewer layers, passes or micro-batches, or \
                 shorter sequences for a recurrent model",
            ),
            Self::UnknownMemory => {
                f.write_str("the GPU's memory is unknown: set hardware.memory_mib")
            }
            Self::UnknownSpeed(gpu) => write!(
                f,
                "the speed of {gpu} is unknown: set hardware.tflops and hardware.bandwidth"
            ),
        }
    }
}

impl std::error::Error for Unsupported {}
