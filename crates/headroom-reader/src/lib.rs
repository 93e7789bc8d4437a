//! What people bring, read as an expert reads it: a sentence, a name, files, scripts, commands.
//!
//! `text → evaluator (shell, Python, documents) → the program's reader → Facts → Draft`

pub mod fact;
pub mod facts;
pub mod keys;
pub mod names;
pub mod program;
pub mod programs;
pub mod sentence;
pub mod words;
