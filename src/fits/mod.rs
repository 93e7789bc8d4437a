//! Whether it fits: the answer, where the memory goes, when, and how it grows.

pub mod breakdown;
pub mod cluster;
pub mod depth;
pub mod gauge;
pub mod host;
pub mod map;
pub mod network;
pub mod one_rank;
pub mod phases;
pub mod pipeline;
pub mod ranks;
pub mod stack;
pub mod sweep;
pub mod timeline;
pub mod trust;
pub mod verdict;
