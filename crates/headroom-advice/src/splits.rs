//! Splits of an effective batch: what each micro-batch needs, and how long a step takes with it.

use super::micro::{all, with_batch};
use headroom_base::units::Bytes;
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{Estimate, Phase, Prediction, Unsupported};
use headroom_scenario::Scenario;

/// An effective batch in equal parts.
#[derive(Clone, Debug)]
pub struct Split {
    pub scenario: Scenario,
    pub estimate: Estimate,
    pub time: Option<StepTime>,
}

/// As many rows as a table shows.
const MOST: usize = 12;

impl Split {
    /// The peak of the forward pass.
    pub fn forward(&self) -> Bytes {
        let mut phases = self.estimate.phases.iter();
        let forward = phases.find(|part| part.what == Phase::Forward);
        forward.map_or(Bytes::ZERO, |part| part.bytes)
    }
}

/// Every split that can be followed, from the largest micro-batch to the smallest.
pub fn splits(scenario: &Scenario) -> Result<Vec<Split>, Unsupported> {
    let mut found = Vec::new();
    for size in all(scenario).into_iter().take(MOST) {
        let prediction = Prediction::new(with_batch(scenario, size));
        let estimate = match prediction.estimate() {
            Ok(estimate) => estimate.clone(),
            Err(Unsupported::TooMuchWork) => continue,
            Err(other) => return Err(other),
        };
        found.push(Split {
            estimate,
            time: prediction.step_time().ok(),
            scenario: prediction.scenario().clone(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::presets;

    #[test]
    fn every_split_keeps_the_batch_and_smaller_ones_need_less() {
        let scenario = presets::find("dreams").map(presets::Preset::scenario);
        let mut scenario = scenario.unwrap_or_default();
        scenario.data.micro_batch = 64;
        let found = splits(&scenario).unwrap();
        assert_eq!(found.len(), 7);
        for pair in found.windows(2) {
            assert!(pair[0].forward() > pair[1].forward());
            assert!(pair[0].estimate.device.expected >= pair[1].estimate.device.expected);
        }
        for split in &found {
            assert_eq!(split.scenario.effective_batch(), scenario.effective_batch());
        }
    }
}
