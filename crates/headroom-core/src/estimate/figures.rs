//! The plain figures that estimates consist of.

use serde::Serialize;

use crate::tape::Phase;
use headroom_base::units::Bytes;

/// A quantity with its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    pub low: Bytes,
    pub expected: Bytes,
    pub high: Bytes,
}

impl Band {
    /// The band, raised to at least another.
    pub fn at_least(self, floor: Self) -> Self {
        Self {
            low: self.low.max(floor.low),
            expected: self.expected.max(floor.expected),
            high: self.high.max(floor.high),
        }
    }
}

/// One line of a breakdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part<K> {
    pub what: K,
    pub bytes: Bytes,
}

/// One instant of the step, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instant {
    pub phase: Phase,
    /// Allocated at this instant.
    pub bytes: Bytes,
}
