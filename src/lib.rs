//! Headroom: does this training run fit, what do I change, what do I run?
//!
//! Data flows one way: `scenario → nets on the tape → step → events → estimate → strategy, exports, page`.
//! Everything but `web` is pure; see `ARCHITECTURE.md` for the rooms in reading order.

pub mod allocator;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
pub(crate) mod decimal;
pub mod document;
pub mod dtype;
pub mod estimate;
pub mod export;
pub mod guide;
pub mod import;
mod list;
pub mod mesh;
pub mod nets;
pub mod order;
pub mod parallel;
pub mod scenario;
pub mod share;
pub mod step;
pub mod strategy;
pub mod tape;
#[cfg(feature = "cli")]
pub mod truth;
pub mod units;
#[cfg(feature = "web")]
pub mod web;
