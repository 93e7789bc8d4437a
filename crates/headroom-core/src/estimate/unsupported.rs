//! Why there is no estimate.

use std::fmt;

use crate::nets::ModelError;
use headroom_scenario::Problem;

/// The reason why a question about a scenario has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// `model.id` names no entry of the catalogue.
    UnknownModel(String),
    /// The model is not built, or does not run on batches like these.
    Model(ModelError),
    /// A size that the model does not have.
    NoSize(String),
    /// The declared network is not valid.
    Network(Problem),
    /// The file of a recorded model is not valid.
    Recording(String),
    /// The recorded graph of a catalogue's model, by its id, is not here yet.
    GraphAbsent(&'static str),
    /// A setting that is not valid.
    Setting(Problem),
    /// No parameter is left to train: a run without gradients says nothing about training.
    NothingTrained(Problem),
    /// Its steps are too long to be followed tensor by tensor.
    TooMuchWork,
    /// The memory of the GPU is neither listed nor given.
    UnknownMemory,
    /// The speed of the GPU, by its id, is neither listed nor given.
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
                "a step of this run makes too many tensors to follow them all: give it fewer layers, passes or micro-batches, \
                 or shorter sequences where each position is a step",
            ),
            Self::UnknownMemory => {
                f.write_str("the GPU's memory is not known, so nothing can be said to fit")
            }
            Self::UnknownSpeed(gpu) => write!(
                f,
                "the speed of {gpu} is not known: give hardware.tflops and hardware.bandwidth"
            ),
        }
    }
}

impl std::error::Error for Unsupported {}
