//! When a run fits well enough, and quick answers to whether it can.

use super::allowed::Allowed;
use headroom_base::units::Bytes;
use headroom_core::estimate::halves::{self, Passes, Turn, Whole};
use headroom_core::estimate::{Estimate, Unsupported, estimate};
use headroom_scenario::Scenario;

/// How much of the usable memory must stay free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// A share of what is usable, from 0 to below 1.
    pub margin: f64,
    /// The moves that may be taken to get there.
    pub allowed: Allowed,
}

impl Goal {
    pub const fn with_margin(margin: f64) -> Self {
        Self {
            margin,
            allowed: Allowed::ALL,
        }
    }

    /// The same goal, to be met by these moves alone.
    #[must_use]
    pub const fn within(self, allowed: Allowed) -> Self {
        Self { allowed, ..self }
    }

    /// What a run like this has to leave so that even the upper end of its estimate fits.
    pub fn sure(estimate: &Estimate) -> Self {
        let beyond = estimate.device.high - estimate.device.expected;
        let margin = |usable: Bytes| beyond.get() as f64 / usable.get().max(1) as f64;
        Self::with_margin(estimate.usable.map_or(0.0, margin).min(0.99))
    }

    /// Whether this run could be estimated and meets the goal; one that is too much work to follow is no proposal.
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
        estimate.fits == Some(true) && estimate.usable.is_some_and(within)
    }

    /// What torch may allocate at most on the GPU of a run like this: what is usable without the margin, the context and the
    /// libraries. A run whose allocated peak is more cannot meet the goal; one whose peak is less may still not, because the
    /// allocator reserves more than it hands out.
    pub fn allowance(self, estimate: &Estimate) -> Result<Bytes, Unsupported> {
        let usable = estimate.usable.ok_or(Unsupported::UnknownMemory)?;
        let besides = estimate.device.expected - estimate.reserved.expected;
        Ok(usable.scale(1.0 - self.margin) - besides)
    }
}

/// Peaks and times of many variants of one run; what two variants share is estimated once.
#[derive(Debug, Default)]
pub(super) struct Quick {
    passes: Vec<(Scenario, Result<Passes, Unsupported>)>,
    turns: Vec<(Scenario, Result<Turn, Unsupported>)>,
}

impl Quick {
    /// The allocated peak and the step time.
    pub fn whole(&mut self, scenario: &Scenario) -> Result<Whole, Unsupported> {
        if !halves::separable(scenario) {
            return halves::whole(scenario);
        }
        let passes = known(
            &mut self.passes,
            halves::of_passes(scenario),
            halves::passes,
        )?;
        let turn = known(&mut self.turns, halves::of_turn(scenario), halves::turn)?;
        let bare = halves::of_bare_turn(scenario);
        let bare = known(&mut self.turns, bare, halves::turn)?;
        Ok(halves::together(&passes, &turn, &bare))
    }
}

/// The answer for this key, computed where it is not there yet.
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
