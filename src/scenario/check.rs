//! Everything that is wrong with a scenario, found at once.

use super::{Problem, Scenario, settings};

impl Scenario {
    /// Values out of range and combinations that cannot run; empty where the scenario can be estimated.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = settings::all()
            .iter()
            .filter(|setting| setting.applies(self))
            .filter_map(|setting| setting.check(self))
            .collect();
        if self.version != Self::VERSION {
            let expected = format!("{}, the version this program knows", Self::VERSION);
            problems.push(Problem::new("version", self.version.to_string(), expected));
        }
        problems
    }

    /// Micro-batch × accumulation × GPUs: how many samples one optimizer step sees.
    pub fn effective_batch(&self) -> u64 {
        self.data
            .micro_batch
            .saturating_mul(self.training.accumulation)
            .saturating_mul(u64::from(self.hardware.gpus))
    }
}
