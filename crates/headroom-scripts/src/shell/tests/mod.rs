//! Tests of the shell's evaluator and of launchers.

mod evaluation;
mod flags;
mod hostile;
mod launches;
