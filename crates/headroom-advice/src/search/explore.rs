//! How a search explores its space, and what it prunes.

use super::space::{Choice, Space};
use crate::goal::Goal;
use headroom_base::units::Bytes;
use headroom_core::estimate::Unsupported;
use headroom_core::estimate::halves::{self, CombinedStep, OptimizerUpdate, Passes};
use headroom_core::estimate::time::Span;
use headroom_scenario::Scenario;

/// A search under way.
#[derive(Debug)]
pub struct Search {
    pub(super) space: Space,
    pub(super) goal: Goal,
    pub(super) allowance: Bytes,
    pub(super) tasks: Vec<Task>,
    pub(super) updates: Vec<Updates>,
    pub(super) front: Vec<Point>,
    pub(super) tally: Tally,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Combinations of moves and micro-batches.
    pub space: u64,
    /// Of these, estimated or pruned.
    pub settled: u64,
    /// Networks simulated.
    pub estimates: u64,
    /// Combinations of known passes and updates.
    pub sums: u64,
    /// Impossible together, or the same as another.
    pub impossible: u64,
    /// Pruned: a smaller micro-batch is already too large, and memory does not fall as it grows.
    pub too_large: u64,
    /// Pruned: needs at least the memory of a smaller micro-batch and at least the time of a larger one, and a found point
    /// dominates both.
    pub dominated: u64,
    /// Pruned: it leaves out a move that is possible there and never costs memory or time.
    pub outdone: u64,
    pub done: bool,
}

/// A combination on the Pareto front: nothing that needs less memory is faster.
#[derive(Clone, Debug)]
pub struct Point {
    pub peak: Bytes,
    pub time: Span,
    pub(super) choice: Choice,
}

/// A stack of remaining work.
#[derive(Debug)]
pub enum Task {
    /// Explore the networks that begin with these choices.
    Networks(Box<Branch>),
    /// Explore the batches between two known ones.
    Between(Box<Between>),
}

/// Choices along the first axes, and the resulting run with the smallest batch.
#[derive(Debug)]
pub struct Branch {
    pub network: Vec<usize>,
    pub scenario: Scenario,
}

#[derive(Debug)]
pub struct Between {
    pub network: Vec<usize>,
    pub updates: usize,
    /// The larger batch: nothing in between is faster.
    pub large: usize,
    pub fastest: CombinedStep,
    /// The smaller batch: nothing in between needs less.
    pub small: usize,
    pub lowest: CombinedStep,
}

/// The optimizer updates for one set of parameters.
#[derive(Debug)]
pub struct Updates {
    pub key: Scenario,
    pub bare: OptimizerUpdate,
    pub all: Vec<Option<Update>>,
}

#[derive(Clone, Debug)]
pub enum Update {
    Known(Box<OptimizerUpdate>),
    /// The optimizer runs inside backward: there is no separate update.
    InBackward,
}

impl Search {
    /// Explores the choices along the next axis. What is impossible so far stays impossible, and if a move that never makes
    /// a run larger or slower is possible, skipping it gains nothing.
    pub(super) fn branch(&mut self, branch: Branch) -> Result<(), Unsupported> {
        let Branch { network, scenario } = branch;
        let Some(axis) = self.space.axes.get(network.len()) else {
            return self.network(network, scenario);
        };
        let below = self.space.below(network.len() + 1);
        let mut next = Vec::new();
        let mut outdone = false;
        for (place, change) in axis.iter().enumerate() {
            match change.on(&scenario) {
                Some(changed) => {
                    outdone |= change.never_worse;
                    next.push((place + 1, changed));
                }
                None => {
                    self.tally.impossible += below;
                    self.tally.settled += below;
                }
            }
        }
        if outdone {
            self.tally.outdone += below;
            self.tally.settled += below;
        } else {
            next.insert(0, (0, scenario));
        }
        // The last is explored first.
        for (place, scenario) in next.into_iter().rev() {
            let network = [&network[..], &[place]].concat();
            self.tasks
                .push(Task::Networks(Box::new(Branch { network, scenario })));
        }
        Ok(())
    }

    /// Explores one network: its smallest batch, and the largest that may fit.
    fn network(&mut self, network: Vec<usize>, scenario: Scenario) -> Result<(), Unsupported> {
        let each = self.space.per_batch();
        let all = self.space.per_network();
        let Some(smallest) = self.space.batches.len().checked_sub(1) else {
            return Ok(());
        };
        let updates = self.updates(&scenario)?;
        // All samples at once, without accumulation: no gradients are alive during the forward pass, so this may need less
        // than a smaller micro-batch and is checked separately.
        let at_once = self.space.network(&network, 0);
        if let Some(whole) = at_once.filter(|_| smallest > 0) {
            let passes = self.passes(&whole)?;
            if self.at_once_at_least(&passes) <= self.allowance {
                self.sum(&network, 0, &passes, updates)?;
            } else {
                self.tally.too_large += each;
                self.tally.settled += each;
            }
        }
        let all = if smallest > 0 { all - each } else { all };
        let first = 1.min(smallest);
        let low = self.passes(&scenario)?;
        let lowest = halves::at_least(&low);
        let least = if smallest == 0 {
            self.at_once_at_least(&low)
        } else {
            lowest.peak
        };
        if least > self.allowance {
            self.tally.too_large += all;
            self.tally.settled += all;
            return Ok(());
        }
        self.sum(&network, smallest, &low, updates)?;
        // The largest batch that may fit, by bisection: all above are too large.
        let (mut fits, mut known) = (smallest, (low, lowest));
        let (mut from, mut to) = (first, smallest);
        while from < to {
            let middle = from + (to - from) / 2;
            let passes = match self.space.network(&network, middle) {
                Some(scenario) => self.passes(&scenario)?,
                None => return Ok(()),
            };
            let least = halves::at_least(&passes);
            if least.peak <= self.allowance {
                to = middle;
                (fits, known) = (middle, (passes, least));
            } else {
                from = middle + 1;
            }
        }
        let too_large = each * (fits - first) as u64;
        self.tally.too_large += too_large;
        self.tally.settled += too_large;
        if fits < smallest {
            self.sum(&network, fits, &known.0, updates)?;
            self.tasks.push(Task::Between(Box::new(Between {
                network,
                updates,
                large: fits,
                fastest: known.1,
                small: smallest,
                lowest,
            })));
        }
        Ok(())
    }

    /// Explores the batch in the middle, unless a found point dominates everything in between.
    pub(super) fn between(&mut self, gap: Between) -> Result<(), Unsupported> {
        let inside = gap.small - gap.large - 1;
        if inside == 0 {
            return Ok(());
        }
        let fastest = self.fastest_update(gap.updates);
        let better = |point: &Point| {
            point.peak <= gap.lowest.peak
                && point.time.expected.get() <= gap.fastest.step.expected.get() + fastest
        };
        if self.front.iter().any(better) {
            let pruned = inside as u64 * self.space.per_batch();
            self.tally.dominated += pruned;
            self.tally.settled += pruned;
            return Ok(());
        }
        let middle = gap.large + (gap.small - gap.large) / 2;
        let Some(scenario) = self.space.network(&gap.network, middle) else {
            return Ok(());
        };
        let passes = self.passes(&scenario)?;
        let least = halves::at_least(&passes);
        self.sum(&gap.network, middle, &passes, gap.updates)?;
        self.tasks.push(Task::Between(Box::new(Between {
            network: gap.network.clone(),
            updates: gap.updates,
            large: middle,
            fastest: least,
            small: gap.small,
            lowest: gap.lowest,
        })));
        self.tasks.push(Task::Between(Box::new(Between {
            small: middle,
            lowest: least,
            ..gap
        })));
        Ok(())
    }

    /// A lower bound over all optimizers without accumulation: one inside backward never holds all gradients.
    fn at_once_at_least(&self, passes: &Passes) -> Bytes {
        let least = halves::at_least(passes).peak;
        if self.space.in_backward.is_some() {
            least - passes.gradients()
        } else {
            least
        }
    }

    fn passes(&mut self, scenario: &Scenario) -> Result<Passes, Unsupported> {
        self.tally.estimates += 1;
        halves::passes(&halves::passes_key(scenario))
    }

    /// Seconds of the fastest of these updates.
    fn fastest_update(&self, updates: usize) -> f64 {
        let all = self
            .updates
            .get(updates)
            .into_iter()
            .flat_map(|updates| &updates.all);
        let seconds = all.flatten().map(|update| match update {
            Update::Known(update) => update.seconds(),
            Update::InBackward => 0.0,
        });
        seconds.fold(f64::INFINITY, f64::min)
    }

    /// Combines the passes with every update, and with the optimizer inside backward.
    fn sum(
        &mut self,
        network: &[usize],
        batch: usize,
        passes: &Passes,
        updates: usize,
    ) -> Result<(), Unsupported> {
        let micro_batch = self.space.batches.get(batch).copied().unwrap_or(1);
        for update in 0..self.space.updates.len() {
            let choice = Choice {
                network: network.to_vec(),
                micro_batch,
                update,
                in_backward: false,
            };
            let options = 1 + u64::from(self.space.in_backward.is_some());
            self.tally.settled += options;
            let known = self.updates.get(updates);
            let of = known.and_then(|known| Some((known.bare, known.all.get(update)?.clone()?)));
            match of {
                Some((bare, Update::Known(known))) => {
                    self.tally.sums += 1;
                    let whole = halves::combine(passes, &known, &bare);
                    self.offer(whole, choice.clone());
                    self.in_backward(choice, passes, &whole)?;
                }
                Some((_, Update::InBackward)) => match self.space.scenario(&choice) {
                    Some((scenario, _)) => {
                        self.tally.estimates += 1;
                        self.offer(halves::unsplit(&scenario)?, choice);
                    }
                    None => self.tally.impossible += options,
                },
                None => self.tally.impossible += options,
            }
        }
        Ok(())
    }

    /// With the optimizer inside backward the step is simulated as a whole, unless its forward pass alone is too large or a
    /// found point dominates it.
    fn in_backward(
        &mut self,
        choice: Choice,
        passes: &Passes,
        beside: &CombinedStep,
    ) -> Result<(), Unsupported> {
        if self.space.in_backward.is_none() {
            return Ok(());
        }
        let choice = Choice {
            in_backward: true,
            ..choice
        };
        let Some((scenario, _)) = self.space.scenario(&choice) else {
            self.tally.impossible += 1;
            return Ok(());
        };
        // It saves at most the gradients, and does the same work.
        let least = beside.in_passes - passes.gradients();
        let better = |point: &Point| {
            point.peak <= least && point.time.expected.get() <= beside.step.expected.get()
        };
        if least > self.allowance {
            self.tally.too_large += 1;
        } else if self.front.iter().any(better) {
            self.tally.dominated += 1;
        } else {
            self.tally.estimates += 1;
            let whole = halves::unsplit(&scenario)?;
            self.offer(whole, choice);
        }
        Ok(())
    }

    /// Adds the point if nothing on the front dominates it, and drops the points it dominates.
    fn offer(&mut self, whole: CombinedStep, choice: Choice) {
        if whole.peak > self.allowance {
            return;
        }
        let seconds = whole.step.expected.get();
        let as_good =
            |point: &Point| point.peak <= whole.peak && point.time.expected.get() <= seconds;
        if self.front.iter().any(as_good) {
            return;
        }
        self.front
            .retain(|point| point.peak < whole.peak || point.time.expected.get() < seconds);
        let at = self
            .front
            .partition_point(|point| point.time.expected.get() < seconds);
        self.front.insert(
            at,
            Point {
                peak: whole.peak,
                time: whole.step,
                choice,
            },
        );
    }

    /// The index of the updates for this network's parameters, estimated if new.
    fn updates(&mut self, scenario: &Scenario) -> Result<usize, Unsupported> {
        let key = halves::update_key(scenario);
        if let Some(at) = self.updates.iter().position(|updates| updates.key == key) {
            return Ok(at);
        }
        let bare = halves::update(&halves::stateless_update_key(scenario))?;
        let mut all = Vec::new();
        for moves in &self.space.updates {
            let changed = moves
                .iter()
                .try_fold(scenario.clone(), |now, change| change.on(&now));
            all.push(match changed {
                Some(changed) if halves::separable(&changed) => {
                    self.tally.estimates += 1;
                    Some(Update::Known(Box::new(halves::update(&changed)?)))
                }
                Some(_) => Some(Update::InBackward),
                None => None,
            });
        }
        self.updates.push(Updates { key, bare, all });
        Ok(self.updates.len() - 1)
    }
}
