//! `Scenario`, the input: one versioned type, with one definition per field. A `Draft` is what was said of it; `resolve` fills
//! in the rest.
//!
//! The form, link keys, file keys, command-line flags, the JSON Schema, the documentation and the messages
//! all derive from the table in `settings`.

pub mod document;
pub mod network;
pub mod presets;
pub mod resolve;
pub mod schema;
pub mod settings;
pub mod share;
pub mod systems;

mod batch;
mod case;
mod check;
mod choices;
mod draft;
mod irreps;
mod length;
mod pictures;
mod problem;
mod quantity;
#[cfg(any(test, feature = "testing"))]
pub mod sample;
mod setting;
mod task;
mod types;
mod values;
pub mod versions;

pub use batch::Batch;
pub use case::Case;
pub use choices::*;
pub use draft::Draft;
pub use irreps::{Irrep, Irreps, Path};
pub use problem::{NameKind, Problem, one_of};
pub use resolve::{Origin, Resolved, resolve};
pub use task::Task;
pub use types::*;
