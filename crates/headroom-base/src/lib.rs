//! What every other crate builds on: quantities, number formats, the grid of GPUs, documents.

pub mod decimal;
pub mod document;
mod dtype;
pub mod list;
pub mod mesh;
pub mod order;
pub mod units;

pub use dtype::DType;
