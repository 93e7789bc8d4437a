//! The ladder: the fewest changes that make a run fit, cheapest kind first, with the same effective batch.

mod finder;

pub use finder::{MICRO_BATCH, Route};

use super::goal::{Goal, Quick};
use super::moves::{Cost, MOVES, Move};
use finder::{Finder, Set};
use headroom_base::order::sorted;
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{Estimate, Prediction, Unsupported};
use headroom_scenario::Scenario;

/// The steps from a run to one that fits.
#[derive(Clone, Debug)]
pub struct Ladder {
    pub start: Estimate,
    /// `None` if the GPU's speed is unknown.
    pub start_time: Option<StepTime>,
    /// In the order of application; empty if the run fits as it is.
    pub steps: Vec<Rung>,
    /// Whether the run fits after the last step.
    pub fits: bool,
    /// Other sets of as many steps of the same kind, fastest first.
    pub alternatives: Vec<Route>,
    /// False if there were too many sets of changes to try them all: a smaller one may exist.
    pub exhaustive: bool,
}

/// One step and what the run needs after it.
#[derive(Clone, Debug)]
pub struct Rung {
    pub id: &'static str,
    pub title: String,
    pub cost: Cost,
    /// Its effect on speed and quality, and the source.
    pub speed: &'static str,
    pub quality: &'static str,
    pub source: &'static str,
    pub caveat: &'static str,
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// `None` if the GPU's speed is unknown.
    pub time: Option<StepTime>,
}

/// Finds the ladder. Sets of changes are tried by the cost of their most expensive change, then by their size; of those
/// that fit, the one with the shortest step time wins.
pub fn ladder(scenario: &Scenario, goal: Goal) -> Result<Ladder, Unsupported> {
    let prediction = Prediction::new(scenario.clone());
    let start = prediction.estimate()?;
    if start.fits.is_none() {
        return Err(Unsupported::UnknownMemory);
    }
    let mut ladder = Ladder {
        start_time: prediction.step_time().ok(),
        steps: Vec::new(),
        fits: goal.met(start),
        alternatives: Vec::new(),
        exhaustive: true,
        start: start.clone(),
    };
    if ladder.fits {
        return Ok(ladder);
    }
    let mut finder = Finder {
        scenario,
        goal,
        allowance: goal.allowance(&ladder.start)?,
        quick: Quick::default(),
        left: Finder::MOST,
    };
    let mut best = None;
    for most in [Cost::Free, Cost::Time, Cost::Results] {
        let found = finder.shortest(most)?;
        ladder.exhaustive &= finder.left > 0;
        finder.left = Finder::MOST;
        if let Some((first, others)) = found {
            ladder.alternatives = others;
            best = Some(first);
            break;
        }
    }
    ladder.fits = best.is_some();
    let set = match best {
        Some(set) => set,
        None => finder.smallest()?,
    };
    ladder.steps = steps(scenario, &set)?;
    Ok(ladder)
}

/// The set's steps, cheapest first, each with the estimate after it and those before it.
fn steps(scenario: &Scenario, set: &Set) -> Result<Vec<Rung>, Unsupported> {
    let place = |mv: &Move| MOVES.iter().position(|other| other.id == mv.id);
    let moves = sorted(set.moves.iter().copied(), |a, b| place(a).cmp(&place(b)));
    let mut order: Vec<Option<&'static Move>> = moves.into_iter().map(Some).collect();
    if set.micro_batch.is_some() {
        let at = order.partition_point(|mv| mv.is_some_and(|mv| mv.cost <= Cost::Time));
        order.insert(at, None);
    }
    let mut now = Set::default();
    let mut steps = Vec::new();
    let mut pending = order;
    while !pending.is_empty() {
        // A move that depends on a later one comes after it.
        let ready = pending.iter().position(|mv| {
            let mut next = now.clone();
            match mv {
                Some(mv) => next.moves.push(mv),
                None => next.micro_batch = set.micro_batch,
            }
            next.applied(scenario).is_some()
        });
        let next = pending.remove(ready.unwrap_or(0));
        match next {
            Some(change) => now.moves.push(change),
            None => now.micro_batch = set.micro_batch,
        }
        let Some(changed) = now.applied(scenario) else {
            continue;
        };
        let prediction = Prediction::new(changed);
        let scenario = prediction.scenario().clone();
        let estimate = prediction.estimate()?.clone();
        let time = prediction.step_time().ok();
        steps.push(match next {
            Some(change) => Rung {
                id: change.id,
                title: change.title.into(),
                cost: change.cost,
                speed: change.speed,
                quality: change.quality,
                source: change.source,
                caveat: change.caveat,
                scenario,
                estimate,
                time,
            },
            None => Rung {
                id: MICRO_BATCH,
                title: format!(
                    "micro-batch {} with {} accumulation steps",
                    scenario.data.micro_batch, scenario.training.accumulation
                ),
                cost: Cost::Time,
                speed: "The same work in more but smaller passes.",
                quality: "The same effective batch; `headroom accumulate` lists the remaining differences.",
                source: "computed step time; arXiv 1706.02677 for batches and learning rates",
                caveat: "Batch norm sees fewer samples at once, and a mean over tokens gives every micro-batch the same weight.",
                scenario,
                estimate,
                time,
            },
        });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::super::Allowed;
    use super::*;
    use headroom_scenario::settings;

    /// On GPUs that are too small for it: the steps that come nearest, of which none may raise the peak.
    fn check(seq: &str, expected: &[&str]) {
        let mut scenario = Scenario::default();
        for (name, value) in [
            ("model", "llama-3.1-8b"),
            ("dims", "layers=8,vocab=8000"),
            ("optim", "sgd"),
            ("mb", "8"),
            ("gpus", "8"),
            ("par", "fsdp2"),
            ("mem", "2000"),
            ("seq", seq),
        ] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let checkpointing = Allowed::only(|known| known.id == "checkpointing");
        let ladder = ladder(&scenario, Goal::default().within(checkpointing)).unwrap();
        let ids: Vec<_> = ladder.steps.iter().map(|rung| rung.id).collect();
        assert!(!ladder.fits);
        assert_eq!(ids, expected, "{seq}");
        let mut peak = ladder.start.allocated.expected;
        for rung in &ladder.steps {
            let after = rung.estimate.allocated.expected;
            assert!(after < peak, "{seq}: {} needs {after}", rung.id);
            peak = after;
        }
    }

    #[test]
    fn the_closest_set_has_no_step_that_needs_more() {
        check("8192", &["checkpointing", "micro-batch"]);
        // The gradients that are kept whole between micro-batches are more than what the smaller ones save.
        check("1024", &["checkpointing"]);
    }
}
