//! What to change so that a run fits. Everything here asks `estimate`; nothing adds up memory itself.

mod batches;
pub mod doctor;
mod fit;
mod ladder;
mod map;
mod moves;

pub use batches::{Batches, Load, batches};
pub use fit::{Fit, fit};
pub use ladder::{Ladder, Step, ladder};
pub use map::{FitMap, Size};
pub use moves::{Cost, MOVES, Move};
