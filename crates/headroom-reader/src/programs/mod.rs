//! The programs that are read, one file each.

mod axolotl;
mod hf;
pub mod launched;
mod llamafactory;

use super::program::Program;

/// The most distinctive first: a source belongs to the first that reads it.
pub const PROGRAMS: &[Program] = &[
    axolotl::PROGRAM,
    llamafactory::PROGRAM,
    // Whatever has the arguments of transformers' `Trainer`.
    hf::PROGRAM,
];
