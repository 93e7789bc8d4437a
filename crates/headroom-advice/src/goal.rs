//! When a run fits well enough, and quick checks of whether it can.

use headroom_base::units::Bytes;
use headroom_core::estimate::{Estimate, Fit, Unsupported, estimate};
use headroom_scenario::Scenario;

/// How much of the usable memory must stay free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// As a share of usable memory, from 0 to below 1.
    pub margin: f64,
    /// Whether even the upper end of a run's own range has to fit.
    pub sure: bool,
}

impl Goal {
    pub const fn with_margin(margin: f64) -> Self {
        Self {
            margin,
            sure: false,
        }
    }

    /// The same goal, met only by runs that fit surely: each is judged by its own range.
    #[must_use]
    pub const fn surely(self) -> Self {
        Self { sure: true, ..self }
    }

    /// Whether this run meets the goal; a run that is too much work to simulate does not.
    pub fn met_by(self, scenario: &Scenario) -> Result<bool, Unsupported> {
        match estimate(scenario) {
            Ok(found) => Ok(self.met(&found)),
            Err(Unsupported::TooMuchWork) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Whether the run fits and leaves the margin.
    pub fn met(self, estimate: &Estimate) -> bool {
        let within = |usable: Bytes| {
            estimate.device.expected + estimate.growth <= usable.scale(1.0 - self.margin)
        };
        let enough = match estimate.fit() {
            Some(Fit::Fits) => true,
            Some(Fit::Probably) => !self.sure,
            Some(Fit::ProbablyNot | Fit::No) | None => false,
        };
        enough && estimate.usable.is_some_and(within)
    }

    /// The most torch can allocate on the GPU of such a run: usable memory without the margin, the context and the
    /// libraries. A run with a higher allocated peak cannot meet the goal; one with a lower peak may still not, because the
    /// allocator reserves more than it hands out.
    pub fn allowance(self, estimate: &Estimate) -> Result<Bytes, Unsupported> {
        let usable = estimate.usable.ok_or(Unsupported::UnknownMemory)?;
        let besides = estimate.device.expected - estimate.reserved.expected;
        Ok(usable.scale(1.0 - self.margin) - besides)
    }
}
