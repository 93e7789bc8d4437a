//! Why a run ran out of memory.

pub mod doctor;
pub mod measured;
pub mod report;
pub mod snapshot;
