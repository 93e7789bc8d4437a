//! How a search goes through its space, and what it need not look at.

use super::space::Choice;
use super::{Point, Search};
use headroom_base::units::Bytes;
use headroom_core::estimate::Unsupported;
use headroom_core::estimate::halves::{self, Passes, Turn, Whole};
use headroom_scenario::Scenario;

/// What is still to do; the last first.
#[derive(Debug)]
pub enum Task {
    /// Look at the networks that begin with these choices.
    Networks(Box<Branch>),
    /// Batches between two that are known, by their places: the larger, the smaller, and what these come to.
    Between(Box<Between>),
}

/// Choices along the first axes, and what they make of a run with the smallest batch.
#[derive(Debug)]
pub struct Branch {
    pub network: Vec<usize>,
    pub scenario: Scenario,
}

#[derive(Debug)]
pub struct Between {
    pub network: Vec<usize>,
    pub turns: usize,
    /// Of the larger batch: nothing between is faster.
    pub large: usize,
    pub fastest: Whole,
    /// Of the smaller batch: nothing between needs less.
    pub small: usize,
    pub lowest: Whole,
}

/// The optimizer's turns for one set of parameters.
#[derive(Debug)]
pub struct Turns {
    pub key: Scenario,
    pub bare: Turn,
    pub all: Vec<Option<TurnOf>>,
}

#[derive(Clone, Debug)]
pub enum TurnOf {
    Known(Box<Turn>),
    /// The optimizer works inside backward: there is no turn of its own.
    InBackward,
}

impl Search {
    /// Follows the choices along the next axis. What is impossible so far stays so, and where a move that never makes a run
    /// larger or slower is possible, going without it gains nothing.
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
        // The last is looked at first.
        for (place, scenario) in next.into_iter().rev() {
            let network = [&network[..], &[place]].concat();
            self.tasks
                .push(Task::Networks(Box::new(Branch { network, scenario })));
        }
        Ok(())
    }

    /// Looks at one network: its smallest batch, and the largest that may fit.
    fn network(&mut self, network: Vec<usize>, scenario: Scenario) -> Result<(), Unsupported> {
        let each = self.space.of_a_batch();
        let all = self.space.of_a_network();
        let Some(smallest) = self.space.batches.len().checked_sub(1) else {
            return Ok(());
        };
        let turns = self.turns(&scenario)?;
        // All samples at once, without accumulation: no gradients are kept through a forward pass, so this may need less than
        // a smaller micro-batch, and is looked at by itself.
        let at_once = self.space.network(&network, 0);
        if let Some(whole) = at_once.filter(|_| smallest > 0) {
            let passes = self.passes(&whole)?;
            if self.at_once_at_least(&passes) <= self.allowance {
                self.sum(&network, 0, &passes, turns)?;
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
        self.sum(&network, smallest, &low, turns)?;
        // The largest batch that may fit, by halving: all above are too large.
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
            self.sum(&network, fits, &known.0, turns)?;
            self.tasks.push(Task::Between(Box::new(Between {
                network,
                turns,
                large: fits,
                fastest: known.1,
                small: smallest,
                lowest,
            })));
        }
        Ok(())
    }

    /// Looks at the batch in the middle, unless something found is better than all between could be.
    pub(super) fn between(&mut self, gap: Between) -> Result<(), Unsupported> {
        let inside = gap.small - gap.large - 1;
        if inside == 0 {
            return Ok(());
        }
        let fastest = self.fastest_turn(gap.turns);
        let better = |point: &Point| {
            point.peak <= gap.lowest.peak
                && point.time.expected.get() <= gap.fastest.step.expected.get() + fastest
        };
        if self.front.iter().any(better) {
            let pruned = inside as u64 * self.space.of_a_batch();
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
        self.sum(&gap.network, middle, &passes, gap.turns)?;
        self.tasks.push(Task::Between(Box::new(Between {
            network: gap.network.clone(),
            turns: gap.turns,
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

    /// The least that any optimizer can make of passes without accumulation: one inside backward never holds all gradients.
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
        halves::passes(&halves::of_passes(scenario))
    }

    /// Seconds of the shortest of these turns.
    fn fastest_turn(&self, turns: usize) -> f64 {
        let all = self
            .turns
            .get(turns)
            .into_iter()
            .flat_map(|turns| &turns.all);
        let seconds = all.flatten().map(|turn| match turn {
            TurnOf::Known(turn) => turn.seconds(),
            TurnOf::InBackward => 0.0,
        });
        seconds.fold(f64::INFINITY, f64::min)
    }

    /// Puts the passes together with every turn, and with the optimizer inside backward.
    fn sum(
        &mut self,
        network: &[usize],
        batch: usize,
        passes: &Passes,
        turns: usize,
    ) -> Result<(), Unsupported> {
        let micro_batch = self.space.batches.get(batch).copied().unwrap_or(1);
        for turn in 0..self.space.turns.len() {
            let choice = Choice {
                network: network.to_vec(),
                micro_batch,
                turn,
                in_backward: false,
            };
            let options = 1 + u64::from(self.space.in_backward.is_some());
            self.tally.settled += options;
            let known = self.turns.get(turns);
            let of = known.and_then(|known| Some((known.bare, known.all.get(turn)?.clone()?)));
            match of {
                Some((bare, TurnOf::Known(known))) => {
                    self.tally.sums += 1;
                    let whole = halves::together(passes, &known, &bare);
                    self.offer(whole, choice.clone());
                    self.in_backward(choice, passes, &whole)?;
                }
                Some((_, TurnOf::InBackward)) => match self.space.scenario(&choice) {
                    Some((scenario, _)) => {
                        self.tally.estimates += 1;
                        self.offer(halves::whole(&scenario)?, choice);
                    }
                    None => self.tally.impossible += options,
                },
                None => self.tally.impossible += options,
            }
        }
        Ok(())
    }

    /// Where the optimizer may run inside backward, the run is made as a whole: unless its forward pass alone is too large, or
    /// something found is better than it could be.
    fn in_backward(
        &mut self,
        choice: Choice,
        passes: &Passes,
        beside: &Whole,
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
        // It saves gradients at most, and does the same work.
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
            let whole = halves::whole(&scenario)?;
            self.offer(whole, choice);
        }
        Ok(())
    }

    /// Keeps the point where nothing on the front is at least as good, and lets go what it is better than.
    fn offer(&mut self, whole: Whole, choice: Choice) {
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

    /// The place of the turns of this network's parameters, estimated where they are not known.
    fn turns(&mut self, scenario: &Scenario) -> Result<usize, Unsupported> {
        let key = halves::of_turn(scenario);
        if let Some(at) = self.turns.iter().position(|turns| turns.key == key) {
            return Ok(at);
        }
        let bare = halves::turn(&halves::of_bare_turn(scenario))?;
        let mut all = Vec::new();
        for moves in &self.space.turns {
            let changed = moves
                .iter()
                .try_fold(scenario.clone(), |now, change| change.on(&now));
            all.push(match changed {
                Some(changed) if halves::separable(&changed) => {
                    self.tally.estimates += 1;
                    Some(TurnOf::Known(Box::new(halves::turn(&changed)?)))
                }
                Some(_) => Some(TurnOf::InBackward),
                None => None,
            });
        }
        self.turns.push(Turns { key, bare, all });
        Ok(self.turns.len() - 1)
    }
}
