//! A preset and its variants, each estimated once.

use crate::order::Map;
use std::cell::RefCell;
use std::rc::Rc;

use crate::estimate::{Category, Estimate, Unsupported, estimate, quick_peak};
use crate::scenario::{Case, Scenario, presets, settings};
use crate::units::{Bytes, UnitStyle};

/// Changes to a preset: paths or link keys with their values, as `--set` takes them.
pub type Changes<'a> = &'a [(&'a str, &'a str)];

/// Where a guide's claims are tried.
#[derive(Debug)]
pub struct Lab {
    base: Scenario,
    peaks: RefCell<Map<String, Bytes>>,
    estimates: RefCell<Map<String, Rc<Estimate>>>,
}

impl Lab {
    /// The lab of a preset, or nothing where there is none of this name.
    pub fn new(preset: &str) -> Option<Self> {
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

    /// The peak of a variant's tensors.
    pub fn peak(&self, changes: Changes) -> Result<Bytes, Unsupported> {
        let key = named(changes);
        if let Some(peak) = self.peaks.borrow().get(&key) {
            return Ok(*peak);
        }
        let peak = quick_peak(&self.scenario(changes)?)?;
        self.peaks.borrow_mut().insert(key, peak);
        Ok(peak)
    }

    /// The whole estimate of a variant.
    pub fn estimate(&self, changes: Changes) -> Result<Rc<Estimate>, Unsupported> {
        let key = named(changes);
        if let Some(found) = self.estimates.borrow().get(&key) {
            return Ok(found.clone());
        }
        let made = Rc::new(estimate(&self.scenario(changes)?)?);
        self.estimates.borrow_mut().insert(key, made.clone());
        Ok(made)
    }

    /// The peak in words, such as "1.93 GiB".
    pub fn peak_in_words(&self, changes: Changes) -> Result<String, Unsupported> {
        Ok(self.peak(changes)?.to_string())
    }

    /// The peaks of several variants in words, in their order.
    pub fn peaks_in_words(&self, all: &[Changes]) -> Result<String, Unsupported> {
        let peaks: Result<Vec<String>, Unsupported> = all
            .iter()
            .map(|changes| self.peak_in_words(changes))
            .collect();
        Ok(peaks?.join(", "))
    }

    /// What a variant needs of its card, and whether it fits: "13.7 GiB of tensors, 15.2 GiB on the card, 34 % of 44.4 GiB: fits".
    pub fn needs(&self, changes: Changes) -> Result<String, Unsupported> {
        let found = self.estimate(changes)?;
        let (tensors, device) = (found.allocated.expected, found.device.expected);
        let Some(usable) = found.usable.filter(|it| *it > Bytes::ZERO) else {
            return Ok(format!("{tensors} of tensors, {device} on the card"));
        };
        let share = device.get() as f64 / usable.get() as f64 * 100.0;
        let verdict = if device <= usable {
            "fits"
        } else {
            "does not fit"
        };
        Ok(format!(
            "{tensors} of tensors, {device} on the card, {share:.0} % of {usable}: {verdict}"
        ))
    }

    /// What a category holds at the peak, in decimal units as guides write them.
    pub fn part(&self, changes: Changes, what: Category) -> Result<Bytes, Unsupported> {
        let found = self.estimate(changes)?;
        let part = found.breakdown.iter().find(|part| part.what == what);
        Ok(part.map_or(Bytes::ZERO, |part| part.bytes))
    }

    /// The samples one optimizer step sees, as a product: "2 × 32 × 4 = 256".
    pub fn batch(&self, changes: Changes) -> Result<String, Unsupported> {
        let scenario = self.scenario(changes)?;
        Ok(format!(
            "{} × {} × {} = {}",
            scenario.data.micro_batch,
            scenario.training.accumulation,
            scenario.hardware.gpus,
            scenario.effective_batch()
        ))
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

    /// The peaks before and after a change, and what it saves: "1.93 GiB → 1.93 GiB (0 %)".
    pub fn change(&self, before: Changes, after: Changes) -> Result<String, Unsupported> {
        let (before, after) = (self.peak(before)?, self.peak(after)?);
        Ok(format!(
            "{before} → {after} ({})",
            difference(before, after)
        ))
    }
}

/// A size as guides write it: "0.73 GB".
pub fn decimal(bytes: Bytes) -> String {
    bytes.show(UnitStyle::Decimal)
}

fn named(changes: Changes) -> String {
    let pairs: Vec<String> = changes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join("&")
}

/// What a change makes of a size, in per cent: "−26 %", "0 %", "+7.8 %".
pub fn difference(before: Bytes, after: Bytes) -> String {
    if before == Bytes::ZERO {
        return "from nothing".into();
    }
    let percent = (after.get() as f64 / before.get() as f64 - 1.0) * 100.0;
    // Two figures are all that a comparison of predictions is worth.
    let size = percent.abs();
    let sign = if percent < 0.0 { "−" } else { "+" };
    match size {
        _ if size < 0.05 => "0 %".into(),
        _ if size < 10.0 => format!("{sign}{size:.1} %"),
        _ => format!("{sign}{size:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_read_well() {
        #[track_caller]
        fn check(before: u64, after: u64, expected: &str) {
            assert_eq!(difference(Bytes::new(before), Bytes::new(after)), expected);
        }
        check(1000, 1000, "0 %");
        check(1000, 740, "−26 %");
        check(1000, 986, "−1.4 %");
        check(1000, 1078, "+7.8 %");
        check(0, 5, "from nothing");
    }

    #[test]
    fn changed_dimensions_join_those_of_the_preset() {
        let lab = Lab::new("dreams").unwrap();
        let scenario = lab.scenario(&[("dims", "peaks=80")]).unwrap();
        assert_eq!(scenario.model.dims.get("peaks"), Some(&80));
    }
}
