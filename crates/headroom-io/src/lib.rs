//! Runs as files for other programs, and their files as runs.

pub mod export;
pub mod guide;
pub mod import;
