//! What to change so that a run fits. Everything here asks `estimate`; nothing adds up memory itself.

pub mod doctor;
mod fit;

pub use fit::{Fit, fit};
