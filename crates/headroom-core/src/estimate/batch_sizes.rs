//! Batch sizes drawn from a scenario's distribution, and many steps with them.

use super::alloc_conf::settings;
use super::engine::Engine;
use super::{
    Collation, LoopOptions, ManySteps, SizeDistribution, StepRequests, StepSequence, Unsupported,
    device, resume,
};
use crate::allocator::Card;
use crate::step::Run;
use headroom_base::order::sorted;
use headroom_scenario::{Case, Distribution, Runtime, Scenario};
use std::borrow::Cow;

/// Sizes that stand for edges, and those that grow with them, in networks over graphs.
const EDGES: [&str; 2] = ["nonbonded", "edges"];
const WITH_EDGES: [&str; 4] = ["nodes", "bonded", "angles", "dihedrals"];

/// Records this many steps with batches of varying size.
///
/// Sizes are evenly spaced quantiles of the distribution, in a low-discrepancy order (multiples of the golden ratio), so
/// the same scenario always gives the same steps. `first_steps` is the run with batches of the scenario's own size.
pub(super) fn steps<'a>(
    case: &Case,
    first_steps: impl Fn() -> Result<&'a Run, Unsupported>,
    count: usize,
) -> Result<StepSequence, Unsupported> {
    let scenario = case.scenario;
    let edges = edges(case);
    let warm_up = if scenario.hardware.gpus > 1 { 2 } else { 1 };
    let interludes = scenario.runtime.eval_batch.is_some() || resume::on_device(scenario);
    StepSequence::record(batch_sizes(case, count), warm_up, &mut |size, read| {
        let alike = SizeDistribution::of(&scenario.data).is_none();
        if alike && !interludes && edges.is_none() && size == scenario.data.sequence {
            read(&first_steps()?.trace);
        } else {
            let sized = sized(case, edges, size);
            let case = Case {
                scenario: &sized,
                ..*case
            };
            read(&Engine::of(&case)?.steps_alone()?.trace);
        }
        Ok(())
    })
}

impl StepSequence {
    /// Replays plain steps on a GPU, with the scenario's allocator settings.
    pub fn on(&self, card: Card, runtime: &Runtime) -> ManySteps {
        self.emptying_cache(card, runtime, 0)
    }

    /// The same with `torch.cuda.empty_cache()` every `every` steps; 0 for never.
    pub fn emptying_cache(&self, card: Card, runtime: &Runtime, every: usize) -> ManySteps {
        let options = LoopOptions {
            empty_cache_every: every,
            ..LoopOptions::default()
        };
        self.replay(&settings(runtime), card, &options)
    }
}

/// The requests of the first step, or of a later one, with batches of this size.
pub(super) fn requests(case: &Case, size: u64, first: bool) -> Result<StepRequests, Unsupported> {
    let sized = sized(case, edges(case), size);
    let case = Case {
        scenario: &sized,
        ..*case
    };
    let run = Engine::of(&case)?.steps_alone()?;
    Ok(if first {
        StepRequests::of_first(&run.trace)
    } else {
        StepRequests::of(&run.trace)
    })
}

/// The size of the largest batch: edges of a batch, or tokens of a sample.
pub(super) fn largest(case: &Case) -> u64 {
    let scenario = case.scenario;
    let edges = edges(case);
    let maximum = SizeDistribution::of(&scenario.data)
        .and_then(|sizes| sizes.maximum(scenario.data.micro_batch, collation(edges)));
    match (maximum, edges) {
        (Some(maximum), _) => maximum.max(1.0) as u64,
        (None, Some(name)) => {
            let each = case.listed_size(name).unwrap_or(0);
            each.saturating_mul(scenario.data.micro_batch)
        }
        (None, None) => scenario.data.sequence,
    }
}

/// The scenario's own GPU, which can run out of memory; unlimited if its size is unknown.
pub fn own_card(case: &Case) -> Card {
    device::left(case).map_or(Card::UNLIMITED, |left| Card {
        total: Some(left),
        context: device::overhead(case),
        ..Card::UNLIMITED
    })
}

/// The scenario with the batches that decide whether it fits: the largest, if samples vary and a maximum is known.
pub fn deciding(scenario: &Scenario) -> Cow<'_, Scenario> {
    let case = Case::of(scenario);
    let edges = edges(&case);
    let maximum = SizeDistribution::of(&scenario.data)
        .and_then(|sizes| sizes.maximum(scenario.data.micro_batch, collation(edges)));
    maximum.map_or(Cow::Borrowed(scenario), |size| {
        Cow::Owned(sized(&case, edges, size.max(1.0) as u64))
    })
}

/// The scenario with batches of the usual size, where samples vary.
pub(crate) fn typical(scenario: &Scenario) -> Option<Scenario> {
    let case = Case::of(scenario);
    let edges = edges(&case);
    let sizes = SizeDistribution::of(&scenario.data)?;
    let size = sizes.typical(scenario.data.micro_batch, collation(edges));
    Some(sized(&case, edges, size.max(1.0) as u64))
}

/// The 95th percentile of batch sizes, if samples vary.
pub fn frequent(scenario: &Scenario) -> Option<u64> {
    let edges = edges(&Case::of(scenario));
    let sizes = SizeDistribution::of(&scenario.data)?;
    Some(sizes.p95(scenario.data.micro_batch, collation(edges)) as u64)
}

fn collation(edges: Option<&str>) -> Collation {
    if edges.is_some() {
        Collation::Concatenated
    } else {
        Collation::Padded
    }
}

/// The sizes of this many batches; all equal if the scenario's samples are.
fn batch_sizes(case: &Case, count: usize) -> Vec<u64> {
    let scenario = case.scenario;
    let batch = scenario.data.micro_batch;
    let edges = edges(case);
    let collation = collation(edges);
    let Some(distribution) = SizeDistribution::of(&scenario.data) else {
        let size = match edges {
            Some(name) => case.listed_size(name).unwrap_or(0).saturating_mul(batch),
            None => scenario.data.sequence,
        };
        return vec![size; count];
    };
    let mut sizes: Vec<u64> = (0..count)
        .map(|step| {
            let share = (0.5 + step as f64 * 0.618_033_988_749_894_9).fract();
            distribution.at(share, batch, collation).max(1.0) as u64
        })
        .collect();
    limit_distinct(&mut sizes);
    sizes
}

/// Bounds the number of distinct sizes, since each costs a run: the others are rounded up to the next kept one.
fn limit_distinct(sizes: &mut [u64]) {
    const MOST: usize = 64;
    let mut all = sorted(sizes.iter().copied(), Ord::cmp);
    all.dedup();
    if all.len() <= MOST {
        return;
    }
    for size in sizes {
        let place = all.partition_point(|other| other < size);
        // The largest of each equal share of them.
        let share = place * MOST / all.len();
        let last = ((share + 1) * all.len()).div_ceil(MOST) - 1;
        *size = all.get(last).copied().unwrap_or(*size);
    }
}

/// The size named for edges in the scenario's model.
pub fn edges(case: &Case) -> Option<&'static str> {
    let model = case.model?;
    EDGES.into_iter().find(|name| model.size(name).is_some())
}

/// The scenario with batches of one size: of a graph all counts change alike.
pub fn sized(case: &Case, edges: Option<&str>, size: u64) -> Scenario {
    let scenario = case.scenario;
    let mut changed = scenario.clone();
    // One size from here on.
    changed.data.distribution = Distribution::Fixed;
    let Some(edges) = edges.filter(|_| case.model.is_some()) else {
        changed.data.sequence = size;
        return changed;
    };
    let given = |name: &str| case.listed_size(name).unwrap_or(0);
    let each = size.div_ceil(scenario.data.micro_batch.max(1));
    let before = given(edges).max(1);
    for name in WITH_EDGES {
        let count = given(name);
        if count > 0 {
            let scaled = u128::from(count) * u128::from(each) / u128::from(before);
            let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).max(1);
            changed.model.dims.insert(name.into(), scaled);
        }
    }
    changed.model.dims.insert(edges.into(), each.max(1));
    changed
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::estimate::{Prediction, estimate};
    use headroom_base::units::Bytes;
    use headroom_scenario::settings;

    fn gpt2(changes: &[(&str, &str)]) -> Scenario {
        let mut scenario = Scenario::default();
        let small = [("dims", "layers=2"), ("mb", "2"), ("dropout", "off")];
        for (name, value) in small.iter().chain(changes) {
            settings::set(&mut scenario, name, value).unwrap();
        }
        scenario
    }

    const VARYING: [(&str, &str); 4] = [
        ("dist", "varying"),
        ("mean", "200"),
        ("p95", "450"),
        ("max", "1024"),
    ];

    fn replayed(scenario: &Scenario, count: usize, card: Card) -> ManySteps {
        let prediction = Prediction::new(scenario.clone());
        let steps = prediction.many_steps(count).unwrap();
        steps.on(card, &scenario.runtime)
    }

    #[test]
    fn steps_of_one_size_match_the_estimate() {
        for changes in [
            &[][..],
            &[("keep_outputs", "on")],
            &[("zero_none", "off"), ("ema", "on")],
            &[("accum", "3")],
            &[("gpus", "2")],
            &[("expandable", "on")],
        ] {
            let scenario = gpt2(changes);
            let one = estimate(&scenario).unwrap();
            let many = replayed(&scenario, 8, Card::UNLIMITED);
            assert_eq!(many.allocated(), one.allocated.expected, "{changes:?}");
            assert_eq!(many.reserved(), one.reserved.expected, "{changes:?}");
            let last = many.steps.last().map(|step| step.reserved_end);
            assert_eq!(last, many.steps.get(3).map(|step| step.reserved_end));
        }
    }

    #[test]
    fn varying_sizes_reserve_more_than_any_step_allocates() {
        let many = replayed(&gpt2(&VARYING), 60, Card::UNLIMITED);
        assert_eq!(many.steps.len(), 60);
        assert!(
            many.steps
                .windows(2)
                .all(|pair| pair[0].reserved_end <= pair[1].reserved_end)
        );
        let ratio = |many: &ManySteps| many.reserved().get() as f64 / many.allocated().get() as f64;
        let mut expandable = gpt2(&VARYING);
        expandable.runtime.expandable_segments = true;
        let grown = replayed(&expandable, 60, Card::UNLIMITED);
        assert!(
            ratio(&grown) < ratio(&many),
            "{} {}",
            ratio(&grown),
            ratio(&many)
        );
    }

    #[test]
    fn a_small_gpu_fails_at_a_large_batch() {
        let mut scenario = gpt2(&VARYING);
        let free = replayed(&scenario, 60, own_card(&Case::of(&scenario)));
        assert_eq!((free.failure, free.steps.len()), (None, 60));
        let context = estimate(&scenario).unwrap();
        let outside = context.device.expected - context.reserved.expected;
        let enough = (free.allocated() + outside).scale(0.8).get() / Bytes::mib(1).get();
        scenario.hardware.memory_mib = NonZero::new(enough);
        let tight = replayed(&scenario, 60, own_card(&Case::of(&scenario)));
        let (step, oom) = tight.failure.unwrap();
        assert_eq!(tight.steps.len(), step);
        assert!(tight.retries > 0 && oom.free < oom.tried);
    }
}
