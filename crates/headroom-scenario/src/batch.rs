//! How many samples one optimizer step sees, and how close that is to the wanted global batch.

use std::num::NonZero;

use super::{Parallelism, Scenario};
use headroom_base::mesh::Mesh;

/// The product behind an effective batch, and the batch that was wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    pub micro_batch: u64,
    pub accumulation: u64,
    /// Copies of the model that see different samples.
    pub replicas: u64,
    /// `data.global_batch`, where one is wanted.
    pub wanted: Option<u64>,
}

impl Batch {
    /// Micro-batch × accumulation × replicas.
    pub fn samples(&self) -> u64 {
        self.micro_batch
            .saturating_mul(self.accumulation)
            .saturating_mul(self.replicas)
    }

    /// How far the samples are from the wanted ones, as a part of these: -0.016 is 1.6 % fewer.
    pub fn difference(&self) -> Option<f64> {
        let wanted = self.wanted? as f64;
        Some((self.samples() as f64 - wanted) / wanted)
    }

    /// The accumulation whose product comes nearest to the wanted batch; of two equally near, the smaller batch.
    pub fn nearest_accumulation(&self) -> Option<u64> {
        let wanted = self.wanted?;
        let once = self.micro_batch.saturating_mul(self.replicas).max(1);
        let below = (wanted / once).max(1);
        let above = below.saturating_add(1);
        let off = |times: u64| once.saturating_mul(times).abs_diff(wanted);
        Some(if off(above) < off(below) {
            above
        } else {
            below
        })
    }
}

/// `3 × 21 × 4 = 252, -1.6 % of 256`.
impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            micro_batch,
            accumulation,
            replicas,
            ..
        } = self;
        let samples = self.samples();
        write!(f, "{micro_batch} × {accumulation} × {replicas} = {samples}")?;
        match (self.wanted, self.difference()) {
            (Some(wanted), _) if wanted == samples => write!(f, ", as wanted"),
            (Some(wanted), Some(off)) => {
                let sign = if off < 0.0 { '−' } else { '+' };
                write!(f, ", {sign}{:.1} % of {wanted}", off.abs() * 100.0)
            }
            _ => Ok(()),
        }
    }
}

impl Scenario {
    /// Copies of the model that see different samples: GPUs over those that share one copy.
    pub fn replicas(&self) -> u64 {
        if self.parallel.strategy == Parallelism::None {
            return 1;
        }
        let layout = &self.parallel;
        let shared = [layout.tp, layout.pp, layout.cp]
            .iter()
            .fold(1_u64, |all, &part| all.saturating_mul(u64::from(part)));
        (u64::from(self.hardware.gpus) / shared.max(1)).max(1)
    }

    /// The grid in which the run's GPUs share the work.
    pub fn mesh(&self) -> Mesh {
        use Parallelism::{
            DataParallel, Ddp, Fsdp1, Fsdp2, Hsdp, None, Zero0, Zero1, Zero2, Zero3,
        };
        let layout = &self.parallel;
        let replicas = u32::try_from(self.replicas()).unwrap_or(u32::MAX);
        let nodes = self.hardware.nodes.max(1);
        let (data, shard) = match layout.strategy {
            None | Ddp | DataParallel => (replicas, 1),
            Hsdp if replicas.is_multiple_of(nodes) => (nodes, replicas / nodes),
            Hsdp | Fsdp1 | Fsdp2 | Zero0 | Zero1 | Zero2 | Zero3 => (1, replicas),
        };
        Mesh {
            data,
            shard,
            tensor: layout.tp,
            context: layout.cp,
            expert: layout.ep,
            stages: layout.pp,
        }
    }

    pub fn batch(&self) -> Batch {
        Batch {
            micro_batch: self.data.micro_batch,
            accumulation: self.training.accumulation,
            replicas: self.replicas(),
            wanted: self.data.global_batch.map(NonZero::get),
        }
    }

    /// Micro-batch × accumulation × replicas: how many samples one optimizer step sees.
    pub fn effective_batch(&self) -> u64 {
        self.batch().samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_testing::Dice;

    fn batch(micro_batch: u64, accumulation: u64, replicas: u64, wanted: u64) -> Batch {
        Batch {
            micro_batch,
            accumulation,
            replicas,
            wanted: Some(wanted).filter(|batch| *batch > 0),
        }
    }

    #[test]
    fn a_batch_is_its_product_and_its_distance_from_the_wanted_one() {
        let check = |batch: Batch, shown: &str, nearest| {
            assert_eq!(batch.to_string(), shown);
            assert_eq!(batch.nearest_accumulation(), nearest);
        };
        check(batch(8, 1, 1, 0), "8 × 1 × 1 = 8", None);
        check(
            batch(2, 32, 4, 256),
            "2 × 32 × 4 = 256, as wanted",
            Some(32),
        );
        check(
            batch(3, 21, 4, 256),
            "3 × 21 × 4 = 252, −1.6 % of 256",
            Some(21),
        );
        check(batch(3, 1, 4, 11), "3 × 1 × 4 = 12, +9.1 % of 11", Some(1));
        // Saturates, and does not panic.
        assert_eq!(batch(u64::MAX, 2, 2, 1).nearest_accumulation(), Some(1));
    }

    #[test]
    fn no_accumulation_comes_nearer() {
        let mut dice = Dice::new(8);
        for _ in 0..2000 {
            let planned = batch(
                1 + dice.below(40),
                1,
                1 + dice.below(9),
                1 + dice.below(3000),
            );
            let off = |accumulation| {
                let found = Batch {
                    accumulation,
                    ..planned
                };
                found.samples().abs_diff(planned.wanted.unwrap())
            };
            let nearest = planned.nearest_accumulation().unwrap();
            let best = (1..=3000).map(off).min();
            assert_eq!(Some(off(nearest)), best, "{planned:?}");
        }
    }

    #[test]
    fn gpus_that_share_a_copy_see_the_same_samples() {
        let check = |changes: &[(&str, &str)], replicas| {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                crate::settings::set(&mut scenario, name, value).unwrap();
            }
            assert_eq!(scenario.replicas(), replicas);
        };
        check(&[], 1);
        check(&[("gpus", "8")], 8);
        check(&[("gpus", "8"), ("tp", "2"), ("pp", "2")], 2);
        check(&[("gpus", "8"), ("par", "none")], 1);
        check(&[("gpus", "2"), ("tp", "8")], 1);
    }
}
