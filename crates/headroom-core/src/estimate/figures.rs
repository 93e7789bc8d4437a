//! The plain figures that estimates consist of.

use serde::Serialize;

use crate::tape::Phase;
use headroom_base::units::Bytes;

/// A quantity with its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// The lower end of the range.
    pub low: Bytes,
    /// The predicted value.
    pub expected: Bytes,
    /// The upper end of the range.
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
    /// What the bytes are counted for: a category, a phase or a module path.
    pub what: K,
    /// Its size; for a phase, the allocated peak.
    pub bytes: Bytes,
}

/// One instant of the step, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instant {
    /// The phase of the step that runs at this instant.
    pub phase: Phase,
    /// Allocated at this instant.
    pub bytes: Bytes,
}
