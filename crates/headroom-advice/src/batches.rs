//! Batches of samples that vary: what the typical, a large and the largest need, and how large one may be.

use super::bisection;
use headroom_base::units::Bytes;
use headroom_core::estimate::{
    Collation, SizeDistribution, Unsupported, at_least_once, edges, estimate, quick_peak, sized,
};
use headroom_scenario::{Case, Scenario};

/// One batch, by the size of what varies.
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
    /// What the sizes count.
    pub unit: &'static str,
    pub typical: Load,
    /// One batch in twenty is larger.
    pub p95: Load,
    /// No batch is larger; absent where the largest sample is not known.
    pub worst: Option<Load>,
    /// The largest batch that fits; absent where the card is not known.
    pub budget: Option<u64>,
    /// The chance that a batch is larger than that.
    pub chance: Option<f64>,
    /// The chance that an epoch has such a batch; absent where its number of samples is not known.
    pub per_epoch: Option<f64>,
    /// The chance that an epoch puts its two largest samples into one batch.
    pub largest_meet: Option<f64>,
}

/// What the batches of a run need whose samples vary; nothing where they do not.
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
    let worst = sizes.worst(batch, collation).map(load).transpose()?;
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

/// The largest size that fits: what the card takes beside tensors is taken from the largest batch.
fn budget(
    usable: Bytes,
    largest: &Load,
    of_size: impl Fn(u64) -> Scenario,
) -> Result<u64, Unsupported> {
    /// Sizes that no data set has.
    const MOST: u64 = 1 << 28;
    let beside = largest.device.saturating_sub(largest.allocated);
    let first = largest.size.max(1);
    // A hundredth is nearer than the prediction.
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
    fn the_largest_pair_of_pockets_is_what_the_log_tells_of() {
        let found = of("rna-3e-ffi", &[]).unwrap();
        assert_eq!((found.unit, found.typical.size), ("edges", 40_000));
        assert_eq!(found.typical.fits, Some(true));
        assert_eq!(found.p95.fits, Some(true));
        let worst = found.worst.unwrap();
        assert_eq!((worst.size, worst.fits), (364_624, Some(false)));
        // 40.86 GiB were allocated when 6.52 GiB more were asked for.
        assert!((worst.allocated.as_gib() / (40.86 + 6.52) - 1.0).abs() < 0.03);
        let budget = found.budget.unwrap();
        assert!((280_000..364_624).contains(&budget), "{budget}");
        // The log: once in 33 epochs.
        let chance = found.per_epoch.unwrap();
        assert!((0.01..0.1).contains(&chance), "{chance}");
        assert!((found.largest_meet.unwrap() - 1.0 / 973.0).abs() < 1e-9);
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
