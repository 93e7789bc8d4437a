//! Documents as YAML. Reading takes a parser that the page does without; what is written carries comments, which no
//! library's writer keeps.

#[cfg(feature = "cli")]
mod read;
mod write;

#[cfg(feature = "cli")]
pub use read::read;
pub use write::{comment, scalar, write};
