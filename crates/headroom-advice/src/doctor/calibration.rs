//! What one run on a machine teaches of the next one: the difference between what was measured and what was predicted.

use super::Log;
use headroom_base::units::Bytes;
use headroom_scenario::Scenario;

/// A run that was measured beside its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The most that was allocated.
    pub measured: Bytes,
    pub predicted: Bytes,
    /// In use on the card and not PyTorch's: the CUDA context, libraries and whatever other processes hold.
    pub outside: Option<Bytes>,
}

impl Calibration {
    /// Compares the largest peak of a log with the prediction for the largest batch; `None` without a whole step.
    pub fn of_log(log: &Log, predicted: Bytes) -> Option<Self> {
        let measured = log.trained().map(|step| step.peak_allocated).max()?;
        // Libraries load their kernels in the first step: what the log begins with is less.
        let after = log.trained().filter_map(|step| {
            let (total, free) = (step.total?, step.free?);
            Some(total - free - step.reserved)
        });
        let begun = log.steps.iter().filter_map(|step| step.outside);
        Some(Self {
            measured,
            predicted,
            outside: begun.chain(after).max(),
        })
    }

    /// What the run allocated beyond its prediction. A run that took less proves nothing of the next one.
    pub fn kept(&self) -> Bytes {
        self.measured - self.predicted
    }

    /// The scenario with what was measured, in whole MiB; what was measured before is replaced.
    pub fn correct(&self, scenario: &Scenario) -> Scenario {
        let mut corrected = scenario.clone();
        corrected.runtime.kept_mib = mib(self.kept());
        if let Some(outside) = self.outside {
            corrected.runtime.outside_mib = mib(outside);
        }
        corrected
    }
}

/// The scenario as the catalogue alone has it.
pub fn uncorrected(scenario: &Scenario) -> Scenario {
    let mut plain = scenario.clone();
    plain.runtime.kept_mib = 0;
    plain.runtime.outside_mib = 0;
    plain
}

/// Whole MiB, rounded up.
fn mib(bytes: Bytes) -> u64 {
    const MOST: u64 = 10_000_000;
    bytes.get().div_ceil(1 << 20).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_core::estimate::estimate;

    #[track_caller]
    fn check(log: &str, predicted: u64, kept: u64, outside: u64) {
        let found = Calibration::of_log(&Log::parse(log).unwrap(), Bytes::mib(predicted)).unwrap();
        let runtime = found.correct(&Scenario::default()).runtime;
        assert_eq!(
            (runtime.kept_mib, runtime.outside_mib),
            (kept, outside),
            "{log}"
        );
    }

    const MIB: u64 = 1 << 20;

    fn step(step: i64, peak: u64, more: &str) -> String {
        let peak = peak * MIB;
        format!(
            "{{\"step\":{step},\"peak_allocated\":{peak},\"allocated\":1,\"reserved\":{peak}{more}}}\n"
        )
    }

    #[test]
    fn what_is_measured_corrects_what_is_predicted() {
        check(&step(0, 900, ""), 800, 100, 0);
        // Less than was predicted corrects nothing.
        check(&step(0, 700, ""), 800, 0, 0);
        let before = format!(
            "{{\"step\":-1,\"peak_allocated\":0,\"outside\":{}}}\n",
            450 * MIB
        );
        check(&(before.clone() + &step(0, 900, "")), 800, 100, 450);
        // Total 10,000, free 8,400, reserved 900: 700 are not PyTorch's.
        let free = format!(",\"free\":{},\"total\":{}", 8400 * MIB, 10_000 * MIB);
        check(&(before + &step(0, 900, &free)), 800, 100, 700);
        // An evaluation is not what was predicted.
        let evaluating = step(1, 5000, ",\"phase\":\"eval\"");
        check(&(step(0, 900, "") + &evaluating), 800, 100, 0);
    }

    #[test]
    fn the_next_estimate_has_the_correction_and_no_doubt_of_it() {
        let plain = Scenario::default();
        let found = Calibration {
            measured: Bytes::gib(9.0),
            predicted: Bytes::gib(8.0),
            outside: Some(Bytes::mib(700)),
        };
        let corrected = estimate(&found.correct(&plain)).unwrap();
        let before = estimate(&plain).unwrap();
        assert_eq!(corrected.allocated, before.allocated);
        let expected = before.reserved.expected + Bytes::gib(1.0) + Bytes::mib(700);
        assert_eq!(corrected.device.expected, expected);
        assert!(corrected.doubts.len() < before.doubts.len());
        assert_eq!(uncorrected(&found.correct(&plain)), plain);
    }
}
