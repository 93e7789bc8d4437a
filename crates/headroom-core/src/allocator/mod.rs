//! The CUDA caching allocator of PyTorch 2.15, replayed to the byte.
//!
//! Allocated memory is what tensors need; reserved memory is what the process holds, and a finite card refuses the
//! latter. The difference follows from the order of requests, so it is replayed, not estimated: the rules are those
//! of `c10/cuda/CUDACachingAllocator.cpp` (pools, best fit, splitting, merging, what is given back and when), checked
//! against the real library. A request costs tens of nanoseconds.
//!
//! Addresses are handed out upwards, segment after segment; the real driver may reuse an address, which matters only
//! where two free blocks have the same size. CUDA graphs' private pools and `backend:cudaMallocAsync` are not modelled.

mod bin;
mod blocks;
mod caching;
mod card;
mod cards;
mod counters;
mod driver;
mod expandable;
#[cfg(feature = "files")]
pub mod file;
mod forks;
mod freelist;
mod layout;
mod release;
mod replay;
mod search;
mod settings;
mod sizes;
#[cfg(test)]
mod tests;

pub(crate) use caching::DriverCall;
pub use caching::{Allocator, OUTSIDE, Stream};
pub use card::{Card, Oom};
pub use cards::{smallest_card, smallest_card_between};
pub use counters::{Counters, Stat};
pub(crate) use layout::Repeats;
pub use replay::{Report, Request, Requests, replay};
pub use settings::{Divisions, Settings, SettingsProblem};

#[cfg(test)]
pub(crate) use caching::counting;
use caching::{Block, NONE, Pool, Segment, State};
use sizes::{MIN_BLOCK, SMALL, SMALL_SEGMENT};
