//! The files that run it, and what is shared and printed.

pub mod exports;
pub mod picture;
pub mod printed;
pub mod sharing;
pub mod summary;
