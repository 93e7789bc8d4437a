//! What to change so that a run fits. Everything here asks `estimate`; nothing adds up memory itself.

mod accumulation;
mod allowed;
mod batches;
mod bisection;
mod cards;
pub mod doctor;
mod effect;
mod goal;
mod gpus;
mod ladder;
mod largest_batch;
mod layout;
mod map;
mod micro;
mod moves;
mod rate;
mod search;
mod solve;
mod splits;
mod tiers;

pub use accumulation::{Aspect, Equal, accumulation};
pub use allowed::Allowed;
pub use batches::{Batches, Load, batches};
pub use cards::{CARDS, Card, OnCards, on_cards};
pub use effect::{Effect, effect};
pub use goal::Goal;
pub use gpus::{By, GpuVerdict, Row as GpuRow, gpus, sort as sort_gpus};
pub use ladder::{Ladder, MICRO_BATCH, Route, Rung, ladder};
pub use largest_batch::{LargestBatch, largest_batch};
pub use layout::{Layout, LayoutSearch, Layouts, layouts};
pub use map::{FitMap, Size};
pub use micro::with_batch;
pub use moves::{Cost, FOLKLORE, Folklore, Group, MOVES, Move, find as find_move};
pub use rate::{PROGRAMS, Rule, Scaled, scaled};
pub use search::{Candidate, Found, Point, Search, Tally};
pub use solve::{
    Accumulated, Slope, Solved, Unknown, accumulate, checkpointing, fewest_gpus, on, smallest_gpu,
    solve,
};
pub use splits::{Split, splits};
pub use tiers::{Tier, Variant, tiers};
