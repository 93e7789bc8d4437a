//! What the user asked: one versioned type, and for each of its fields one definition.
//!
//! The form, link keys, file keys, command-line flags, the JSON Schema, the documentation and the messages
//! all derive from the table in `settings`.

pub mod document;
pub mod network;
pub mod presets;
pub mod schema;
pub mod settings;
pub mod share;
pub mod stack;
pub mod systems;

mod batch;
mod case;
mod check;
mod choices;
mod fill;
mod irreps;
mod problem;
mod quantity;
#[cfg(test)]
pub(crate) mod sample;
mod setting;
mod task;
mod types;
mod usual;
mod values;
pub(crate) mod versions;

pub use batch::Batch;
pub use case::Case;
pub use choices::*;
pub(crate) use fill::filled;
pub use irreps::{Irrep, Irreps, Path};
pub use problem::Problem;
pub(crate) use problem::{nearest, one_of};
pub use task::Task;
pub use types::*;
pub use usual::{Usual, usual};
