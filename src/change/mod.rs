//! What to change, and comparisons.

pub mod advice;
pub mod compare;
pub mod guide;
pub mod planner;
pub mod single;
