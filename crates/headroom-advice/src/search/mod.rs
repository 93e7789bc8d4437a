//! The search: all combinations of moves and micro-batches, for the fastest that fits and the Pareto front of memory and time.
//!
//! `step` works for a while and reports progress, so that a page can show it and stop it.

mod explore;
mod space;

pub use explore::{Point, Search, Tally};

use super::goal::Goal;
use super::micro::with_batch;
use super::moves::{Cost, Move};
use explore::{Branch, Task};
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::halves;
use headroom_core::estimate::time::Span;
use headroom_core::estimate::{Estimate, Growth, Prediction, Unsupported, estimate};
use headroom_scenario::Scenario;
use space::{Choice, Space};

/// A point with its full estimate.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub scenario: Scenario,
    pub moves: Vec<&'static Move>,
    pub estimate: Estimate,
    pub time: Span,
    /// Whether a full estimate meets the goal.
    pub fits: bool,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The fastest on the front that meets the goal; `None` if nothing fits.
    pub best: Option<Candidate>,
    /// The front by allocated peak, the fastest first.
    pub front: Vec<Candidate>,
    pub tally: Tally,
}

/// What the run's evaluations leave behind by the end.
fn grown(scenario: &Scenario) -> Bytes {
    Growth::of(scenario).map_or(Bytes::ZERO, Growth::by_the_end)
}

impl Search {
    /// A search over all moves up to this cost.
    pub fn new(scenario: &Scenario, goal: Goal, most: Cost) -> Result<Self, Unsupported> {
        let allowance = goal.allowance(&estimate(scenario)?)?;
        let space = Space::new(scenario, most, goal.allowed);
        let first = space.batches.last().map(|smallest| {
            Task::Networks(Box::new(Branch {
                network: Vec::new(),
                scenario: with_batch(&space.base, *smallest),
            }))
        });
        Ok(Self {
            tally: Tally {
                space: space.size(),
                ..Tally::default()
            },
            space,
            goal,
            allowance,
            tasks: first.into_iter().collect(),
            updates: Vec::new(),
            front: Vec::new(),
        })
    }

    /// Continues until about this many networks have been simulated, or until done.
    pub fn step(&mut self, budget: u64) -> Result<Tally, Unsupported> {
        let until = self.tally.estimates.saturating_add(budget.max(1));
        while self.tally.estimates < until {
            match self.tasks.pop() {
                Some(Task::Networks(branch)) => self.branch(*branch)?,
                Some(Task::Between(between)) => self.between(*between)?,
                None => {
                    self.tally.done = true;
                    break;
                }
            }
        }
        self.tally.done = self.tasks.is_empty();
        Ok(self.tally)
    }

    /// The front as far as it is known, the fastest first.
    pub fn front(&self) -> &[Point] {
        &self.front
    }

    /// Runs to the end and fully estimates the front.
    pub fn finish(mut self) -> Result<Found, Unsupported> {
        while !self.step(u64::MAX / 2)?.done {}
        let front = self
            .front
            .iter()
            .filter_map(|point| self.candidate(point).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        let front = sorted(front, |a, b| {
            a.time.expected.get().total_cmp(&b.time.expected.get())
        });
        Ok(Found {
            best: front.iter().find(|point| point.fits).cloned(),
            front,
            tally: self.tally,
        })
    }

    /// The point's scenario with a full estimate.
    fn candidate(&self, point: &Point) -> Result<Option<Candidate>, Unsupported> {
        let choice = self.simplest(point)?;
        let Some((scenario, moves)) = self.space.scenario(&choice) else {
            return Ok(None);
        };
        let prediction = Prediction::new(scenario);
        let estimate = match prediction.estimate() {
            Ok(estimate) => estimate.clone(),
            // Too much work to simulate: no proposal.
            Err(Unsupported::TooMuchWork) => return Ok(None),
            Err(other) => return Err(other),
        };
        // If batches vary, the largest decides whether it fits and a typical one the step time.
        let varies = prediction.typical()?.is_some();
        let typical = varies.then(|| prediction.step_time().ok()).flatten();
        Ok(Some(Candidate {
            fits: self.goal.met(&estimate),
            scenario: prediction.scenario().clone(),
            moves,
            estimate,
            time: typical.map_or(point.time, |time| time.step),
        }))
    }

    /// The point's choice without moves that gain nothing: moves that never harm were applied unconditionally.
    fn simplest(&self, point: &Point) -> Result<Choice, Unsupported> {
        let mut choice = point.choice.clone();
        for (at, axis) in self.space.axes.iter().enumerate() {
            let place = choice.network.get(at).copied().unwrap_or(0);
            let taken = place.checked_sub(1).and_then(|place| axis.get(place));
            if !taken.is_some_and(|value| value.never_worse) {
                continue;
            }
            let mut without = choice.clone();
            if let Some(place) = without.network.get_mut(at) {
                *place = 0;
            }
            let with = self.space.scenario(&choice);
            if let Some((scenario, _)) = self.space.scenario(&without) {
                if with.is_some_and(|(with, _)| grown(&with) < grown(&scenario)) {
                    continue;
                }
                let whole = halves::unsplit(&scenario)?;
                let seconds = point.time.expected.get() * (1.0 + 1e-9);
                if whole.peak <= point.peak && whole.step.expected.get() <= seconds {
                    choice = without;
                }
            }
        }
        Ok(choice)
    }
}
