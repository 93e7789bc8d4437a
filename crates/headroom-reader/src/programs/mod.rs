//! The programs that are read, one file each.

use super::program::Program;

/// The most distinctive first: a source belongs to the first that reads it.
pub const PROGRAMS: &[Program] = &[];
