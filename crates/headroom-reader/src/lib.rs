//! What people bring, read as an expert reads it: a sentence, a name, files, scripts, commands.
//!
//! `text → evaluator (shell, Python, documents) → the program's reader → Facts → Draft`

pub mod comments;
pub mod documents;
pub mod draft;
pub mod fact;
pub mod facts;
mod finish;
mod flags;
mod jobs;
pub mod keys;
pub mod names;
pub mod optimizers;
mod outcome;
pub mod parts;
pub mod program;
pub mod programs;
pub mod reading;
pub mod report;
pub mod sentence;
pub mod shape;
pub mod words;

pub use outcome::{Outcome, asks, outcome};
pub use words::Wanted;
