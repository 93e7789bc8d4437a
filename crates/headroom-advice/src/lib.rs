//! What to change so that a run fits. All figures come from `estimate`; nothing here computes memory itself.

mod accumulation;
mod batches;
mod bisection;
mod cards;
pub mod doctor;
mod effect;
mod goal;
mod gpus;
mod largest_batch;
mod map;
mod micro;
mod moves;
pub mod planner;
mod rate;
mod solve;
mod splits;
mod tiers;

pub use accumulation::{Aspect, Equal, accumulation};
pub use batches::{Batches, Load, batches};
pub use cards::{CARDS, Card, OnCards, on_cards};
pub use effect::{Effect, effect};
pub use goal::Goal;
pub use gpus::{GpuVerdict, Row as GpuRow, SortBy, gpus, sort as sort_gpus};
pub use largest_batch::{LargestBatch, largest_batch};
pub use map::{FitMap, Rows, Size};
pub use micro::with_batch;
pub use moves::{Cost, FOLKLORE, Folklore, Group, MOVES, Move, find as find_move};
pub use planner::{Locks, Plan, PlanId, Planner, Plans, Results, plan};
pub use rate::{PROGRAMS, Rule, Scaled, scaled};
pub use solve::{
    Accumulated, Slope, SolveFor, Solved, accumulate, checkpointing, fewest_gpus, on, smallest_gpu,
    solve,
};
pub use splits::{Split, splits};
pub use tiers::{Tier, Variant, tiers};
