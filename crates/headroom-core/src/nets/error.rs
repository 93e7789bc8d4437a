//! Why a model is not built, or does not run on a batch.

use std::fmt;

/// Why a model is not built, or does not run on a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// No forward function is written for the architecture.
    UnknownArchitecture(String),
    /// A size that the architecture needs is not given.
    MissingSize(String),
    /// A size that the architecture needs for each stage is not given.
    MissingList(String),
    /// Lists whose lengths do not fit the architecture.
    MismatchedLists {
        /// The lists that do not fit, as the message names them.
        names: &'static str,
        /// The lengths that the architecture needs.
        expected: &'static str,
    },
    /// A size above the limit that keeps a run short.
    TooLarge {
        /// The size, or the setting, that is too large.
        name: String,
        /// The value that it has.
        value: u64,
        /// The largest value that is accepted.
        most: u64,
    },
    /// A size below what the architecture needs.
    TooSmall {
        /// The size that is too small.
        name: &'static str,
        /// The value that it has.
        value: u64,
        /// The smallest value that is accepted.
        least: u64,
    },
    /// A size that does not divide as the architecture's maps do.
    NoMultiple {
        /// The size.
        name: &'static str,
        /// The value that it has.
        value: u64,
        /// What it must be a multiple of.
        of: u64,
    },
    /// Every position of a sequence is a step of its own, in each recurrent layer.
    SequenceTooLong {
        /// The length of a sequence (`data.sequence`).
        sequence: u64,
        /// The number of recurrent layers.
        layers: u64,
        /// The longest sequence that is accepted with this many layers.
        most: u64,
    },
    /// No recording of the model holds for this precision, or for this batch and length.
    NotRecorded {
        /// The micro-batch and the length of the run.
        sizes: (u64, u64),
        /// What the length is called.
        length: &'static str,
        /// The micro-batches and lengths that were recorded, in ascending order.
        recorded: Vec<(u64, u64)>,
    },
    /// A recorded model runs as it was recorded: this setting would change its forward pass.
    NotReplayed(&'static str),
    /// Irreps without `0e`, on which gates and pooling work.
    NoScalars,
    /// No text encoder is known whose hidden states have this width.
    UnknownTextEncoder {
        /// The width of the hidden states that the U-Net attends to.
        width: u64,
    },
}

impl std::error::Error for ModelError {}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::UnknownArchitecture(name) => {
                write!(f, "no forward function for the architecture `{name}`")
            }
            Self::MissingSize(name) => write!(f, "the model needs `{name}`"),
            Self::MissingList(name) => write!(f, "the model needs the list `{name}`"),
            Self::MismatchedLists { names, expected } => {
                write!(f, "{names} do not fit; expected {expected}")
            }
            Self::TooLarge { name, value, most } => {
                write!(f, "{name} is {value}; expected at most {most}")
            }
            Self::TooSmall { name, value, least } => {
                write!(f, "{name} is {value}; expected at least {least}")
            }
            Self::NoMultiple { name, value, of } => {
                let near = (value / of).max(1).saturating_mul(*of);
                write!(
                    f,
                    "{name} is {value}; expected a multiple of {of}, such as {near}"
                )
            }
            Self::SequenceTooLong {
                sequence,
                layers,
                most,
            } => write!(
                f,
                "data.sequence is {sequence}; expected at most {most} with {layers} recurrent layers"
            ),
            Self::NotRecorded {
                sizes,
                length,
                recorded,
            } => {
                write!(
                    f,
                    "no recording covers this precision with data.micro_batch {} and {length} {}; recorded sizes:",
                    sizes.0, sizes.1
                )?;
                for (at, (batch, length)) in recorded.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma} {batch} x {length}")?;
                }
                Ok(())
            }
            Self::NotReplayed(setting) => {
                write!(f, "{setting} is not replayed on a recorded model")
            }
            Self::NoScalars => {
                f.write_str("the model needs scalars among its irreps, such as `0e`")
            }
            Self::UnknownTextEncoder { width } => {
                write!(
                    f,
                    "encoders: no text encoder is known with states of width {width}"
                )
            }
        }
    }
}

/// Refuses a value above `most`: a run must not take hours because of a typo.
pub fn at_most(name: &str, value: u64, most: u64) -> Result<(), ModelError> {
    if value <= most {
        return Ok(());
    }
    Err(ModelError::TooLarge {
        name: name.to_string(),
        value,
        most,
    })
}
