//! The ladder: what to change, cheapest first, until the run fits; the effective batch stays as it is.

use super::moves::{Cost, MOVES, Move};
use crate::estimate::{Estimate, Unsupported, estimate};
use crate::scenario::Scenario;

/// The way from a run to one that fits.
#[derive(Clone, Debug)]
pub struct Ladder {
    pub start: Estimate,
    /// In the order in which they are taken; empty where the run fits as it is.
    pub steps: Vec<Step>,
    /// Whether the run fits after the last step; otherwise nothing listed is enough.
    pub fits: bool,
}

/// One step and what the run needs after it.
#[derive(Clone, Debug)]
pub struct Step {
    pub id: &'static str,
    pub title: String,
    pub cost: Cost,
    pub price: &'static str,
    pub scenario: Scenario,
    pub estimate: Estimate,
}

/// Finds it: moves are added in the order of their cost until the run fits with some micro-batch, then those that
/// were not needed are taken away again, dearest first.
pub fn ladder(scenario: &Scenario) -> Result<Ladder, Unsupported> {
    let start = estimate(scenario)?;
    if start.fits.is_none() {
        let reason = "the GPU's memory is not known, so nothing can be said to fit";
        return Err(Unsupported(reason.into()));
    }
    let mut chosen: Vec<&Move> = Vec::new();
    let mut fits = start.fits == Some(true) || largest_batch(scenario)?.is_some();
    for it in MOVES {
        if fits {
            break;
        }
        let before = applied(scenario, &chosen);
        let Some(after) = (it.apply)(&before) else {
            continue;
        };
        // At the smallest micro-batch, what saves nothing there saves nothing where it matters.
        let smallest = smallest_batch(&after);
        if estimate(&smallest)?.device.expected
            < estimate(&smallest_batch(&before))?.device.expected
        {
            chosen.push(it);
            fits = largest_batch(&after)?.is_some();
        }
    }
    if fits {
        let mut at = chosen.len();
        while at > 0 {
            at -= 1;
            let mut fewer = chosen.clone();
            fewer.remove(at);
            if largest_batch(&applied(scenario, &fewer))?.is_some() {
                chosen = fewer;
            }
        }
    }
    Ok(Ladder {
        steps: steps(scenario, &chosen, fits, &start)?,
        start,
        fits,
    })
}

fn steps(
    scenario: &Scenario,
    chosen: &[&Move],
    fits: bool,
    start: &Estimate,
) -> Result<Vec<Step>, Unsupported> {
    let mut steps = Vec::new();
    let mut now = scenario.clone();
    for it in chosen {
        now = applied(&now, &[it]);
        steps.push(Step {
            id: it.id,
            title: it.title.into(),
            cost: it.cost,
            price: it.price,
            estimate: estimate(&now)?,
            scenario: now.clone(),
        });
    }
    let last = steps.last().map_or(start, |step| &step.estimate);
    if last.fits == Some(true) {
        return Ok(steps);
    }
    let smaller = if fits {
        largest_batch(&now)?
    } else {
        Some(smallest_batch(&now))
    };
    if let Some(smaller) = smaller.filter(|it| *it != now) {
        steps.push(Step {
            id: "micro-batch",
            title: format!(
                "micro-batch {} with {} accumulated",
                smaller.data.micro_batch, smaller.training.accumulation
            ),
            cost: Cost::Time,
            price: "The same effective batch in more, smaller passes; batch norms see fewer samples.",
            estimate: estimate(&smaller)?,
            scenario: smaller,
        });
    }
    Ok(steps)
}

fn applied(scenario: &Scenario, moves: &[&Move]) -> Scenario {
    let apply = |now: Scenario, it: &&Move| (it.apply)(&now).unwrap_or(now);
    moves.iter().fold(scenario.clone(), apply)
}

/// The scenario with the largest micro-batch that fits and keeps the effective batch.
fn largest_batch(scenario: &Scenario) -> Result<Option<Scenario>, Unsupported> {
    let sizes = micro_batches(scenario);
    // The sizes fall, and what is needed falls with them: the first that fits is found by halving.
    let (mut low, mut high) = (0, sizes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let candidate = with_batch(scenario, sizes[middle]);
        if estimate(&candidate)?.fits == Some(true) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(sizes.get(low).map(|size| with_batch(scenario, *size)))
}

fn smallest_batch(scenario: &Scenario) -> Scenario {
    with_batch(scenario, 1)
}

/// Micro-batches that keep the effective batch exactly, from the present one downwards.
fn micro_batches(scenario: &Scenario) -> Vec<u64> {
    let on_one_gpu = scenario
        .data
        .micro_batch
        .saturating_mul(scenario.training.accumulation);
    let divides = |size: &u64| on_one_gpu.is_multiple_of(*size);
    // A scenario's ranges bound this count.
    (1..=scenario.data.micro_batch)
        .rev()
        .filter(divides)
        .collect()
}

fn with_batch(scenario: &Scenario, micro_batch: u64) -> Scenario {
    let mut changed = scenario.clone();
    let on_one_gpu = scenario
        .data
        .micro_batch
        .saturating_mul(scenario.training.accumulation);
    changed.data.micro_batch = micro_batch;
    changed.training.accumulation = on_one_gpu / micro_batch.max(1);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::sample::Dice;
    use crate::scenario::settings;

    /// Whether any set of moves with any micro-batch fits.
    fn possible(scenario: &Scenario, rest: &[Move]) -> bool {
        if largest_batch(scenario).unwrap().is_some() {
            return true;
        }
        rest.iter().enumerate().any(|(at, it)| {
            (it.apply)(scenario).is_some_and(|changed| possible(&changed, &rest[at + 1..]))
        })
    }

    #[test]
    fn the_ladder_ends_where_the_run_fits_and_no_step_is_superfluous() {
        let mut dice = Dice::new(8);
        let mut reached = 0;
        for _ in 0..12 {
            let mut scenario = Scenario::default();
            let memory = (700 + dice.below(2500)).to_string();
            for (name, value) in [
                ("dims", "layers=2,vocab=4000"),
                ("mem", &memory),
                ("mb", dice.one_of(&["4", "6", "16"])),
                ("precision", dice.one_of(&["fp32", "amp-bf16"])),
                ("attn", dice.one_of(&["eager", "sdpa"])),
                ("ema", dice.one_of(&["on", "off"])),
            ] {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let ladder = ladder(&scenario).unwrap();
            assert_eq!(ladder.fits, possible(&scenario, MOVES), "{memory}");
            for step in &ladder.steps {
                assert_eq!(step.scenario.effective_batch(), scenario.effective_batch());
                assert_eq!(step.scenario.check(), vec![]);
            }
            let Some(last) = ladder.steps.last().filter(|_| ladder.fits) else {
                continue;
            };
            reached += 1;
            assert_eq!(last.estimate.fits, Some(true));
            let moves: Vec<&Move> = ladder
                .steps
                .iter()
                .filter_map(|step| MOVES.iter().find(|it| it.id == step.id))
                .collect();
            for at in 0..moves.len() {
                let mut fewer = moves.clone();
                fewer.remove(at);
                let without = applied(&scenario, &fewer);
                assert_eq!(largest_batch(&without).unwrap(), None, "{}", moves[at].id);
            }
        }
        assert!(reached >= 4, "{reached}");
    }

    #[test]
    fn what_fits_needs_no_step() {
        let ladder = ladder(&Scenario::default()).unwrap();
        assert!(ladder.fits && ladder.steps.is_empty());
    }

    #[test]
    fn micro_batches_keep_the_effective_batch() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 12;
        assert_eq!(micro_batches(&scenario), [12, 6, 4, 3, 2, 1]);
        scenario.training.accumulation = 5;
        assert_eq!(micro_batches(&scenario), [12, 10, 6, 5, 4, 3, 2, 1]);
    }
}
