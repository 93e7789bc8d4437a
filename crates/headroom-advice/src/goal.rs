//! When a run fits well enough, and quick checks of whether it can.

use super::allowed::Allowed;
use headroom_base::units::Bytes;
use headroom_core::estimate::halves::{self, CombinedStep, OptimizerUpdate, Passes};
use headroom_core::estimate::{Estimate, Fit, Unsupported, estimate};
use headroom_scenario::Scenario;

/// How much of the usable memory must stay free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// As a share of usable memory, from 0 to below 1.
    pub margin: f64,
    /// Whether even the upper end of a run's own range has to fit.
    pub sure: bool,
    /// The allowed moves.
    pub allowed: Allowed,
}

impl Goal {
    pub const fn with_margin(margin: f64) -> Self {
        Self {
            margin,
            sure: false,
            allowed: Allowed::ALL,
        }
    }

    /// The same goal with only these moves.
    #[must_use]
    pub const fn within(self, allowed: Allowed) -> Self {
        Self { allowed, ..self }
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

/// Peaks and step times of many variants of one run; parts that variants share are estimated once.
#[derive(Debug, Default)]
pub(super) struct Quick {
    passes: Vec<(Scenario, Result<Passes, Unsupported>)>,
    updates: Vec<(Scenario, Result<OptimizerUpdate, Unsupported>)>,
}

impl Quick {
    /// The allocated peak and the step time.
    pub fn combined(&mut self, scenario: &Scenario) -> Result<CombinedStep, Unsupported> {
        if !halves::separable(scenario) {
            return halves::unsplit(scenario);
        }
        let passes = known(
            &mut self.passes,
            halves::passes_key(scenario),
            halves::passes,
        )?;
        let update = known(
            &mut self.updates,
            halves::update_key(scenario),
            halves::update,
        )?;
        let bare = halves::stateless_update_key(scenario);
        let bare = known(&mut self.updates, bare, halves::update)?;
        Ok(halves::combine(&passes, &update, &bare))
    }
}

/// The cached value for this key, computed if absent.
fn known<T: Clone>(
    all: &mut Vec<(Scenario, T)>,
    key: Scenario,
    compute: impl FnOnce(&Scenario) -> T,
) -> T {
    if let Some((_, found)) = all.iter().rev().find(|(known, _)| *known == key) {
        return found.clone();
    }
    let value = compute(&key);
    all.push((key, value.clone()));
    value
}
