//! Batches of sizes drawn from a scenario's distribution, and many steps of them.

use super::{Besides, Joined, SHOWN, Spread, course};
use super::{ManySteps, Plan, Unsupported, Walk, built, device, machine, settings};
use crate::allocator::Card;
use crate::catalog;
use crate::order::sorted;
use crate::scenario::{Runtime, Scenario};
use crate::step::{self, Course};

/// Sizes that stand for edges, and those that grow with them, in networks over graphs.
const EDGES: [&str; 2] = ["nonbonded", "edges"];
const WITH_EDGES: [&str; 4] = ["nodes", "bonded", "angles", "dihedrals"];

/// So many steps with batches as they come.
///
/// Sizes are taken evenly from the distribution (multiples of the golden ratio, whose fractions fill the unit interval evenly),
/// so the same scenario gives the same steps; real runs are as varied, in another order.
pub fn walk(scenario: &Scenario, count: usize) -> Result<Walk, Unsupported> {
    let edges = edges(scenario);
    let beginning = if scenario.hardware.gpus > 1 { 2 } else { 1 };
    Walk::of(drawn(scenario, count), beginning, &mut |size| {
        let scenario = sized(scenario, edges, size);
        let (net, _) = built(&scenario)?;
        let course = Course {
            evaluation: 0,
            resumes: false,
            ..course(&scenario, Course::from_the_start(SHOWN))
        };
        let machine = machine(&scenario);
        Ok(step::run(
            &*net,
            &scenario.data,
            &scenario.training,
            machine,
            course,
        ))
    })
}

impl Walk {
    /// Goes through the steps on a card, with the allocator as it is set.
    pub fn on(&self, card: Card, runtime: &Runtime) -> ManySteps {
        self.through(&Plan {
            settings: &settings(runtime),
            card,
            empty_every: 0,
            besides: Besides::default(),
        })
    }
}

/// The scenario's own card, which may refuse; without end where its size is not known.
pub fn own_card(scenario: &Scenario) -> Card {
    let gpu = catalog::gpu(&scenario.hardware.gpu);
    let left = device::left(&scenario.hardware, gpu);
    left.map_or(Card::UNLIMITED, |left| Card {
        total: Some(left),
        context: device::band(scenario, gpu, super::Band::default()).expected,
        ..Card::UNLIMITED
    })
}

/// The sizes of so many batches: all alike where the scenario's are.
fn drawn(scenario: &Scenario, count: usize) -> Vec<u64> {
    let batch = scenario.data.micro_batch;
    let edges = edges(scenario);
    let joined = if edges.is_some() {
        Joined::Summed
    } else {
        Joined::Padded
    };
    let Some(spread) = Spread::of(&scenario.data) else {
        let size = match edges {
            Some(name) => given(scenario, name).saturating_mul(batch),
            None => scenario.data.sequence,
        };
        return vec![size; count];
    };
    let mut sizes: Vec<u64> = (0..count)
        .map(|step| {
            let share = (0.5 + step as f64 * 0.618_033_988_749_894_9).fract();
            spread.at(share, batch, joined).max(1.0) as u64
        })
        .collect();
    few(&mut sizes);
    sizes
}

/// Each size is a run of its own: of more than so many some are taken, and the others become the next larger one.
fn few(sizes: &mut [u64]) {
    const MOST: usize = 64;
    let mut all = sorted(sizes.iter().copied(), Ord::cmp);
    all.dedup();
    if all.len() <= MOST {
        return;
    }
    for size in sizes {
        let place = all.partition_point(|it| it < size);
        // The largest of each equal share of them.
        let share = place * MOST / all.len();
        let last = ((share + 1) * all.len()).div_ceil(MOST) - 1;
        *size = all.get(last).copied().unwrap_or(*size);
    }
}

/// A size of the model as the scenario has it.
fn given(scenario: &Scenario, name: &str) -> u64 {
    let own = scenario.model.dims.get(name).copied();
    let entry = || catalog::model(&scenario.model.id)?.size(name);
    own.or_else(entry).unwrap_or(0)
}

/// The size named for edges in the scenario's model.
pub fn edges(scenario: &Scenario) -> Option<&'static str> {
    let entry = catalog::model(&scenario.model.id)?;
    EDGES.into_iter().find(|name| entry.size(name).is_some())
}

/// The scenario with batches of one size: of a graph all counts change alike.
pub fn sized(scenario: &Scenario, edges: Option<&str>, size: u64) -> Scenario {
    let mut changed = scenario.clone();
    let Some((edges, entry)) = edges.zip(catalog::model(&scenario.model.id)) else {
        changed.data.sequence = size;
        return changed;
    };
    let given = |name: &str| {
        let own = scenario.model.dims.get(name).copied();
        own.or_else(|| entry.size(name)).unwrap_or(0)
    };
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
    use super::*;
    use crate::estimate::estimate;
    use crate::scenario::settings;
    use crate::units::Bytes;

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

    fn gone(scenario: &Scenario, count: usize, card: Card) -> ManySteps {
        walk(scenario, count).unwrap().on(card, &scenario.runtime)
    }

    #[test]
    fn steps_of_one_size_are_the_steps_of_an_estimate() {
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
            let many = gone(&scenario, 8, Card::UNLIMITED);
            assert_eq!(many.allocated(), one.allocated.expected, "{changes:?}");
            assert_eq!(many.reserved(), one.reserved.expected, "{changes:?}");
            let last = many.steps.last().map(|it| it.reserved);
            assert_eq!(last, many.steps.get(3).map(|it| it.reserved));
        }
    }

    #[test]
    fn varying_sizes_hold_more_than_any_step_allocates() {
        let many = gone(&gpt2(&VARYING), 60, Card::UNLIMITED);
        assert_eq!(many.steps.len(), 60);
        assert!(
            many.steps
                .windows(2)
                .all(|it| it[0].reserved <= it[1].reserved)
        );
        let ratio = |it: &ManySteps| it.reserved().get() as f64 / it.allocated().get() as f64;
        let mut expandable = gpt2(&VARYING);
        expandable.runtime.expandable_segments = true;
        let grown = gone(&expandable, 60, Card::UNLIMITED);
        assert!(
            ratio(&grown) < ratio(&many),
            "{} {}",
            ratio(&grown),
            ratio(&many)
        );
    }

    #[test]
    fn a_card_that_is_too_small_fails_at_a_large_batch() {
        let mut scenario = gpt2(&VARYING);
        let free = gone(&scenario, 60, own_card(&scenario));
        assert_eq!((free.failure, free.steps.len()), (None, 60));
        let context = estimate(&scenario).unwrap();
        let outside = context.device.expected - context.reserved.expected;
        let enough = (free.allocated() + outside).scale(0.8).get() / Bytes::mib(1).get();
        scenario.hardware.memory_mib = enough;
        let tight = gone(&scenario, 60, own_card(&scenario));
        let (step, oom) = tight.failure.unwrap();
        assert_eq!(tight.steps.len(), step);
        assert!(tight.retries > 0 && oom.free < oom.tried);
    }
}
