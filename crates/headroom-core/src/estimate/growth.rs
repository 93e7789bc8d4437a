//! Memory that grows with every evaluation, and the epoch in which it fills the GPU.

use std::num::NonZero;

use headroom_base::units::Bytes;
use headroom_scenario::Scenario;

/// Memory that metrics which are never reset keep from each evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// What one evaluation leaves on the GPU.
    pub per_evaluation: Bytes,
    /// How many evaluations an epoch has, rounded down.
    pub evaluations_per_epoch: u64,
    /// Of the run.
    pub epochs: Option<NonZero<u64>>,
}

impl Growth {
    /// The growth of this scenario; `None` if nothing is kept.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let (data, runtime) = (&scenario.data, &scenario.runtime);
        let limit = runtime.eval_limit.max(0.0);
        // A distributed sampler pads the set so that each process gets as many samples.
        let own = runtime
            .eval_samples
            .div_ceil(scenario.batch().replicas.max(1));
        let samples = if limit > 1.0 {
            let batch = runtime.eval_batch.map_or(data.micro_batch, NonZero::get);
            batch.saturating_mul(limit as u64).min(own)
        } else {
            (own as f64 * limit) as u64
        };
        let per_evaluation = Bytes::new(runtime.eval_keeps.saturating_mul(samples));
        let steps = data.samples / scenario.effective_batch().max(1);
        let evaluations_per_epoch = match runtime.eval_every {
            None => (1.0 / runtime.eval_interval.max(1e-6) + 1e-9) as u64,
            Some(every) => steps / every,
        };
        (per_evaluation > Bytes::ZERO).then_some(Self {
            per_evaluation,
            evaluations_per_epoch,
            epochs: runtime.epochs,
        })
    }

    /// What is kept when the run ends; nothing where its epochs are not known.
    pub fn by_the_end(self) -> Bytes {
        self.after(self.epochs.map_or(0, NonZero::get))
    }

    /// What is kept after so many epochs.
    pub fn after(self, epochs: u64) -> Bytes {
        self.per_evaluation * self.evaluations_per_epoch.saturating_mul(epochs)
    }

    /// The epoch that exhausts this free memory; `None` if nothing grows.
    pub fn full_in(self, room: Bytes) -> Option<u64> {
        let each = self.after(1).get();
        room.get().checked_div(each).map(|whole| whole + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    #[test]
    fn growth_fills_the_gpu_in_the_right_epoch() {
        #[track_caller]
        fn check(per_evaluation: u64, evaluations: u64, room: u64, expected: Option<u64>) {
            let growth = Growth {
                per_evaluation: Bytes::new(per_evaluation),
                evaluations_per_epoch: evaluations,
                epochs: None,
            };
            assert_eq!(growth.full_in(Bytes::new(room)), expected);
        }
        check(10, 10, 599, Some(6));
        check(10, 10, 600, Some(7));
        check(10, 4, 599, Some(15));
        check(0, 10, 599, None);
        check(10, 10, 0, Some(1));
    }

    #[test]
    fn interval_and_limit_scale_growth() {
        #[track_caller]
        fn check(changes: &[(&str, &str)], kept: Option<u64>) {
            let mut scenario = Scenario::default();
            let base = [
                ("gpus", "2"),
                ("mb", "2"),
                ("accum", "1"),
                ("eval_keeps", "65536"),
                ("eval_samples", "1605"),
                ("val_check_interval", "0.1"),
            ];
            for (name, value) in base.iter().chain(changes) {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let found = Growth::of(&scenario).map(|growth| growth.after(1));
            assert_eq!(found, kept.map(|samples| Bytes::new(samples * 65_536)));
        }
        check(&[], Some(8_030));
        check(&[("val_check_interval", "0.25")], Some(3_212));
        check(&[("limit_val_batches", "0.5")], Some(4_010));
        check(&[("limit_val_batches", "100")], Some(2_000));
        check(&[("eval_keeps", "0")], None);
        // One GPU evaluates all of them, four a quarter each.
        check(&[("gpus", "1")], Some(16_050));
        check(&[("gpus", "4")], Some(4_020));
        let steps = [("samples", "6424"), ("eval_every", "803")];
        check(&steps, Some(1_606));
    }
}
