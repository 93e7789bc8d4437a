//! A preset and its variants, each estimated once.

use headroom_base::order::Map;
use std::cell::RefCell;
use std::rc::Rc;

use super::Amount;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::allocator::Card;
use headroom_core::estimate::{
    Category, Estimate, Growth, Prediction, Unsupported, estimate, quick_peak,
};
use headroom_scenario::{Case, Distribution, Scenario, presets, settings};

/// Changes to a preset: paths or link keys with their values, as `--set` takes them.
pub type Changes<'a> = &'a [(&'a str, &'a str)];

/// A preset and its variants.
#[derive(Debug)]
pub struct Variants {
    base: Scenario,
    peaks: RefCell<Map<String, Bytes>>,
    estimates: RefCell<Map<String, Rc<Estimate>>>,
}

impl Variants {
    /// Of this preset; `None` where there is none of this name.
    pub fn of(preset: &str) -> Option<Self> {
        Some(Self {
            base: presets::find(preset)?.scenario(),
            peaks: RefCell::default(),
            estimates: RefCell::default(),
        })
    }

    /// The preset with these changes.
    pub fn scenario(&self, changes: Changes) -> Result<Scenario, Unsupported> {
        let mut scenario = self.base.clone();
        for (name, value) in changes {
            if *name == "dims" {
                // One dimension changes, the others of the preset stay.
                let mut merged = scenario.clone();
                settings::set(&mut merged, name, value).map_err(Unsupported::Setting)?;
                scenario.model.dims.extend(merged.model.dims);
            } else {
                settings::set(&mut scenario, name, value).map_err(Unsupported::Setting)?;
            }
        }
        Ok(scenario)
    }

    /// The preset with these changes, and batches all of the usual size.
    fn usual(&self, changes: Changes) -> Result<Scenario, Unsupported> {
        let mut scenario = self.scenario(changes)?;
        scenario.data.distribution = Distribution::Fixed;
        Ok(scenario)
    }

    /// The epoch in which what evaluations leave behind fills a variant's card, if the run went on for so long.
    pub fn full_in(&self, changes: Changes) -> Result<Amount, Unsupported> {
        let growth = Growth::of(&self.scenario(changes)?);
        let room = self.room(changes)?;
        let epoch = growth.and_then(|growth| growth.full_in(room));
        Ok(Amount::Number(epoch.unwrap_or(u64::MAX) as f64))
    }

    /// The peak of a variant's tensors.
    pub fn peak(&self, changes: Changes) -> Result<Bytes, Unsupported> {
        let key = named(changes);
        if let Some(peak) = self.peaks.borrow().get(&key) {
            return Ok(*peak);
        }
        let peak = quick_peak(&self.usual(changes)?)?;
        self.peaks.borrow_mut().insert(key, peak);
        Ok(peak)
    }

    /// The whole estimate of a variant.
    pub fn estimate(&self, changes: Changes) -> Result<Rc<Estimate>, Unsupported> {
        let key = named(changes);
        if let Some(found) = self.estimates.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found = Rc::new(estimate(&self.usual(changes)?)?);
        self.estimates.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    /// The peak of a variant's tensors, as guides write it.
    pub fn size(&self, changes: Changes) -> Result<Amount, Unsupported> {
        self.peak(changes).map(Amount::Size)
    }

    /// What a variant takes on its card.
    pub fn device(&self, changes: Changes) -> Result<Amount, Unsupported> {
        Ok(Amount::Size(self.estimate(changes)?.device.expected))
    }

    /// What a variant takes of the memory that its card has for it.
    pub fn share(&self, changes: Changes) -> Result<Amount, Unsupported> {
        let found = self.estimate(changes)?;
        Ok(Amount::share(found.device.expected, usable(&found)))
    }

    /// What a variant leaves free on its card.
    pub fn room(&self, changes: Changes) -> Result<Bytes, Unsupported> {
        let found = self.estimate(changes)?;
        Ok(usable(&found).saturating_sub(found.device.expected))
    }

    /// What a variant reserves beyond its tensors.
    pub fn cached(&self, changes: Changes) -> Result<Bytes, Unsupported> {
        let found = self.estimate(changes)?;
        let (reserved, allocated) = (found.reserved.expected, found.allocated.expected);
        Ok(reserved.saturating_sub(allocated))
    }

    /// What a category holds at the peak.
    pub fn part(&self, changes: Changes, what: Category) -> Result<Bytes, Unsupported> {
        let found = self.estimate(changes)?;
        let part = found.breakdown.iter().find(|part| part.what == what);
        Ok(part.map_or(Bytes::ZERO, |part| part.bytes))
    }

    /// The same, as guides write it.
    pub fn part_size(&self, changes: Changes, what: Category) -> Result<Amount, Unsupported> {
        self.part(changes, what).map(Amount::Size)
    }

    /// The samples that one optimizer step sees.
    pub fn samples(&self, changes: Changes) -> Result<Amount, Unsupported> {
        let samples = self.scenario(changes)?.effective_batch();
        Ok(Amount::Number(samples as f64))
    }

    /// A dimension of a variant's model: the scenario's, or the catalogue's.
    pub fn dim(&self, changes: Changes, name: &str) -> Result<u64, Unsupported> {
        let scenario = self.scenario(changes)?;
        let given = scenario.model.dims.get(name).copied();
        let listed = || Case::of(&scenario).model?.size(name);
        given
            .or_else(listed)
            .ok_or_else(|| Unsupported::NoSize(name.into()))
    }

    /// What a change makes of the peak.
    pub fn change(&self, before: Changes, after: Changes) -> Result<Amount, Unsupported> {
        Ok(Amount::change(self.peak(before)?, self.peak(after)?))
    }

    /// What a change makes of the memory that is reserved.
    pub fn reserved_change(&self, before: Changes, after: Changes) -> Result<Amount, Unsupported> {
        let reserved = |changes| self.estimate(changes).map(|found| found.reserved.expected);
        Ok(Amount::change(reserved(before)?, reserved(after)?))
    }

    /// What `torch.cuda.empty_cache()` after every so many of sixty steps makes of the most that their tensors take.
    pub fn emptied_cache(&self, every: usize) -> Result<Amount, Unsupported> {
        const STEPS: usize = 60;
        let prediction = Prediction::new(self.scenario(&[])?);
        let runtime = &prediction.scenario().runtime;
        let steps = prediction.many_steps(STEPS)?;
        let plain = steps.on(Card::UNLIMITED, runtime);
        let emptied = steps.emptying_cache(Card::UNLIMITED, runtime, every);
        Ok(Amount::change(plain.allocated(), emptied.allocated()))
    }
}

/// The memory of a card that a run can have.
fn usable(found: &Estimate) -> Bytes {
    found.usable.unwrap_or_default()
}

/// A size as guides write it: "0.73 GB".
pub fn decimal(bytes: Bytes) -> String {
    bytes.show(UnitStyle::Decimal)
}

fn named(changes: Changes) -> String {
    let pairs: Vec<String> = changes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_dimensions_join_those_of_the_preset() {
        let variants = Variants::of("dreams").unwrap();
        let scenario = variants.scenario(&[("dims", "peaks=80")]).unwrap();
        assert_eq!(scenario.model.dims.get("peaks"), Some(&80));
    }
}
