//! Shell and Python read as programs, as far as they can be known without running anything.
//!
//! Both evaluators are total: any text gives an answer, after an amount of work that is bounded.

mod beside;
pub mod python;
pub mod shell;

pub use beside::{Alone, Beside, File};
