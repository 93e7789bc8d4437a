//! Reading what others wrote. Nothing read is trusted: every problem is a value, and sizes are bounded.

pub mod json;
#[cfg(feature = "cli")]
pub mod yaml;
