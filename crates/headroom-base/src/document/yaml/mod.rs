//! Documents as YAML. What is written carries comments, which no library's writer keeps.

mod read;
mod write;

pub use read::read;
pub use write::{comment, scalar, write};
