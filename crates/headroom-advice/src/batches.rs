//! Batches of varying samples: the memory of a typical, a large and the largest one, and the largest that fits.

use super::bisection;
use headroom_base::units::Bytes;
use headroom_core::estimate::{
    Collation, SizeDistribution, Unsupported, at_least_once, edges, estimate, quick_peak, sized,
};
use headroom_scenario::{Case, Scenario};

/// One batch, by the size that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Edges of all its graphs, or tokens of each of its sequences.
    pub size: u64,
    pub allocated: Bytes,
    pub device: Bytes,
    pub fits: Option<bool>,
}

/// The batches of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    /// The unit of the sizes.
    pub unit: &'static str,
    pub typical: Load,
    /// The 95th percentile.
    pub p95: Load,
    /// The maximum; absent if the largest sample is unknown.
    pub worst: Option<Load>,
    /// The largest batch that fits; absent if the GPU is unknown.
    pub budget: Option<u64>,
    /// The probability that a batch is larger than that.
    pub chance: Option<f64>,
    /// The probability that an epoch has such a batch; absent if the number of samples is unknown.
    pub per_epoch: Option<f64>,
    /// The probability that an epoch puts its two largest samples into one batch.
    pub largest_meet: Option<f64>,
}

/// The memory of a run's batches; `None` if its samples do not vary.
pub fn batches(scenario: &Scenario) -> Result<Option<Batches>, Unsupported> {
    let Some(sizes) = SizeDistribution::of(&scenario.data) else {
        return Ok(None);
    };
    let case = Case::of(scenario);
    let batch = scenario.data.micro_batch;
    let edges = edges(&case);
    let collation = if edges.is_some() {
        Collation::Concatenated
    } else {
        Collation::Padded
    };
    let of_size = |size: u64| sized(&case, edges, size);
    let load = |size: f64| -> Result<Load, Unsupported> {
        let size = size.max(1.0) as u64;
        let found = estimate(&of_size(size))?;
        Ok(Load {
            size,
            allocated: found.allocated.expected,
            device: found.device.expected,
            fits: found.fits,
        })
    };
    let typical = load(sizes.typical(batch, collation))?;
    let p95 = load(sizes.p95(batch, collation))?;
    let worst = sizes.maximum(batch, collation).map(load).transpose()?;
    let largest = worst.unwrap_or(p95);
    let usable = estimate(scenario)?.usable;
    let budget = usable
        .map(|usable| budget(usable, &largest, of_size))
        .transpose()?;
    let chance = budget.map(|size| sizes.chance_above(size as f64, batch, collation));
    let samples = scenario.data.samples;
    let per_epoch = chance.filter(|_| samples > 0).map(|chance| {
        let batches = samples as f64 / batch.max(1) as f64;
        at_least_once(chance, batches)
    });
    let others = samples.saturating_sub(1) as f64;
    let largest_meet = (samples > 1).then(|| (batch.saturating_sub(1) as f64 / others).min(1.0));
    Ok(Some(Batches {
        unit: if edges.is_some() { "edges" } else { "tokens" },
        typical,
        p95,
        worst,
        budget,
        chance,
        per_epoch,
        largest_meet,
    }))
}

/// The largest size that fits, with the non-tensor overhead of the largest batch.
fn budget(
    usable: Bytes,
    largest: &Load,
    of_size: impl Fn(u64) -> Scenario,
) -> Result<u64, Unsupported> {
    /// Sizes that no dataset has.
    const MOST: u64 = 1 << 28;
    let beside = largest.device.saturating_sub(largest.allocated);
    let first = largest.size.max(1);
    // One percent is more precise than the prediction.
    bisection::largest(
        first,
        MOST.max(first),
        |low| low / 100,
        |size| Ok(quick_peak(&of_size(size))? + beside <= usable),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::{presets, settings};

    fn of(preset: &str, changes: &[(&str, &str)]) -> Option<Batches> {
        let mut scenario = presets::find(preset).unwrap().scenario();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        batches(&scenario).unwrap()
    }

    #[test]
    fn sequences_are_padded_to_the_longest() {
        let varying = [
            ("dist", "varying"),
            ("mean", "300"),
            ("p95", "800"),
            ("max", "1024"),
        ];
        let found = of("gpt2-small", &varying).unwrap();
        assert_eq!((found.unit, found.typical.size), ("tokens", 300));
        assert!(found.typical.allocated < found.p95.allocated);
        assert!(found.p95.allocated <= found.worst.unwrap().allocated);
        assert_eq!(found.per_epoch, None);
        assert_eq!(of("gpt2-small", &[]), None);
    }
}
