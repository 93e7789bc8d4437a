//! Documents as JSON.

mod read;
mod write;

pub use read::read;
pub use write::write;
