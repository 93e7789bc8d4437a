//! Sizes of samples that vary: how large the batches of an epoch get, and how often.
//!
//! Sizes are taken as log-normal, which lengths of texts and of graphs are near, through the mean and the 95th
//! percentile, and cut off at the largest. Sums of a batch are taken as log-normal of the same mean and variance
//! (L. Fenton, IRE Transactions on Communications Systems 8, 1960).

use headroom_scenario::{Data, Distribution};

/// How samples of varying size are collated into a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// Graphs: a batch is as large as all its samples together.
    Concatenated,
    /// Sequences: all are padded to the longest of the batch.
    Padded,
}

/// The distribution of samples' sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeDistribution {
    mean: f64,
    max: f64,
    /// What a batch of graphs may hold.
    budget: f64,
    /// The standard deviation of the logarithm.
    sigma: f64,
}

/// The normal distribution's 95th percentile.
const Z95: f64 = 1.644_853_6;

impl SizeDistribution {
    /// What the data says of its samples' sizes, where they vary and their mean is known.
    pub fn of(data: &Data) -> Option<Self> {
        if data.distribution != Distribution::Varying || data.mean == 0 {
            return None;
        }
        let mean = data.mean as f64;
        let p95 = (data.p95 as f64).max(mean);
        // ln(p95 / mean) = z * sigma - sigma^2 / 2; beyond the parabola's top no sigma reaches so far.
        let under = Z95 * Z95 - 2.0 * (p95 / mean).ln();
        let sigma = Z95 - under.max(0.0).sqrt();
        let max = if data.max == 0 {
            f64::INFINITY
        } else {
            (data.max as f64).max(p95)
        };
        let budget = match data.batch_max {
            0 => f64::INFINITY,
            most => most as f64,
        };
        Some(Self {
            mean,
            max,
            budget,
            sigma,
        })
    }

    /// The size of a batch that holds what `batch` average samples hold, or that is as long as an average sample.
    pub fn typical(&self, batch: u64, collation: Collation) -> f64 {
        self.of_all(batch, collation).mean
    }

    /// The size that one batch in twenty exceeds.
    pub fn p95(&self, batch: u64, collation: Collation) -> f64 {
        match collation {
            Collation::Concatenated => self.of_all(batch, collation).quantile(Z95),
            // All samples of the batch are below a length with the chance of one to the power of their number.
            Collation::Padded => {
                self.quantile(tail_inverse(1.0 - 0.95_f64.powf(1.0 / batch.max(1) as f64)))
            }
        }
    }

    /// The size of a batch that is larger than this share of all.
    pub fn at(&self, share: f64, batch: u64, collation: Collation) -> f64 {
        let share = share.clamp(0.0, 1.0);
        match collation {
            Collation::Concatenated => {
                let all = self.of_all(batch, collation);
                all.quantile(tail_inverse(1.0 - share))
            }
            Collation::Padded => {
                let one = share.powf(1.0 / batch.max(1) as f64);
                self.quantile(tail_inverse(1.0 - one))
            }
        }
    }

    /// The size that no batch exceeds: as if its samples were all the largest.
    pub fn worst(&self, batch: u64, collation: Collation) -> Option<f64> {
        let largest = self.max.is_finite().then_some(self.max)?;
        Some(match collation {
            Collation::Concatenated => (largest * batch as f64).min(self.budget),
            Collation::Padded => largest,
        })
    }

    /// The chance that a batch is larger than `size`.
    pub fn chance_above(&self, size: f64, batch: u64, collation: Collation) -> f64 {
        let all = self.of_all(batch, collation);
        if size >= all.max {
            return 0.0;
        }
        match collation {
            Collation::Concatenated => all.above(size),
            Collation::Padded => 1.0 - (1.0 - self.above(size)).powf(batch as f64),
        }
    }

    fn of_all(&self, batch: u64, collation: Collation) -> Self {
        if collation == Collation::Padded {
            return *self;
        }
        let n = batch.max(1) as f64;
        let relative = ((self.sigma * self.sigma).exp() - 1.0) / n;
        Self {
            mean: self.mean * n,
            max: (self.max * n).min(self.budget),
            budget: self.budget,
            sigma: (1.0 + relative).ln().sqrt(),
        }
    }

    fn centre(&self) -> f64 {
        self.mean.ln() - self.sigma * self.sigma / 2.0
    }

    fn quantile(&self, z: f64) -> f64 {
        (self.centre() + z * self.sigma).exp().min(self.max)
    }

    fn above(&self, size: f64) -> f64 {
        if self.sigma <= 0.0 {
            return if size < self.mean { 1.0 } else { 0.0 };
        }
        tail((size.max(f64::MIN_POSITIVE).ln() - self.centre()) / self.sigma)
    }
}

/// The chance that something of chance `each` happens in one of `times` tries.
pub fn at_least_once(each: f64, times: f64) -> f64 {
    1.0 - (1.0 - each.clamp(0.0, 1.0)).powf(times)
}

/// The chance of a normal variable above `z` (the complementary error function of W. Press and others, Numerical
/// Recipes, section 6.2; its relative error is below 1.2e-7).
fn tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let upper = 0.5 * t * (polynomial - x * x).exp();
    if z >= 0.0 { upper } else { 1.0 - upper }
}

/// The `z` above which a normal variable is with this chance, by halving.
fn tail_inverse(chance: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(mean: u64, p95: u64, max: u64) -> SizeDistribution {
        let data = Data {
            distribution: Distribution::Varying,
            mean,
            p95,
            max,
            ..Data::default()
        };
        SizeDistribution::of(&data).unwrap()
    }

    #[track_caller]
    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!(
            (found - expected).abs() <= tolerance,
            "{found}, not {expected}"
        );
    }

    #[test]
    fn chances_are_the_normal_distributions() {
        near(tail(0.0), 0.5, 1e-6);
        near(tail(1.0), 0.158_655, 1e-6);
        near(tail(-2.0), 0.977_25, 1e-5);
        near(tail(5.0), 2.867e-7, 1e-9);
        near(tail_inverse(0.05), Z95, 1e-5);
    }

    #[test]
    fn percentiles_are_met() {
        let sizes = sizes(20_000, 55_000, 182_312);
        near(sizes.p95(1, Collation::Concatenated), 55_000.0, 60.0);
        near(sizes.p95(1, Collation::Padded), 55_000.0, 60.0);
        near(
            sizes.chance_above(55_000.0, 1, Collation::Concatenated),
            0.05,
            0.001,
        );
        near(sizes.at(0.95, 1, Collation::Concatenated), 55_000.0, 60.0);
        near(
            sizes.at(0.95, 8, Collation::Padded),
            sizes.p95(8, Collation::Padded),
            60.0,
        );
        assert_eq!(sizes.worst(2, Collation::Concatenated), Some(364_624.0));
        assert_eq!(sizes.worst(2, Collation::Padded), Some(182_312.0));
        near(
            sizes.chance_above(364_624.0, 2, Collation::Concatenated),
            0.0,
            0.0,
        );
    }

    #[test]
    fn larger_batches_are_larger_and_relatively_more_alike() {
        let sizes = sizes(500, 1_500, 4_096);
        for collation in [Collation::Concatenated, Collation::Padded] {
            for batch in 1..20 {
                let (less, more) = (sizes.p95(batch, collation), sizes.p95(batch + 1, collation));
                assert!(less <= more);
            }
        }
        let relative =
            |n| sizes.p95(n, Collation::Concatenated) / sizes.typical(n, Collation::Concatenated);
        assert!(relative(16) < relative(2));
    }

    #[test]
    fn nothing_varies_where_nothing_is_said_and_odd_numbers_do_no_harm() {
        assert_eq!(SizeDistribution::of(&Data::default()), None);
        for (mean, p95, max) in [(1, 0, 0), (5, 5, 5), (1, 1_000_000, 1), (100, 99, 98)] {
            let sizes = sizes(mean, p95, max);
            for batch in [0, 1, 1_000_000] {
                let chance = sizes.chance_above(3.0, batch, Collation::Concatenated);
                assert!((0.0..=1.0).contains(&chance));
                assert!(sizes.p95(batch, Collation::Padded).is_finite());
            }
        }
        near(at_least_once(0.001, 974.0), 0.623, 0.001);
    }
}
