//! The search: every combination of moves and micro-batches, the fastest that fits, and the front of memory against time.
//!
//! A search is a stepper: `step` works for a while and says how far it is, so that a page can show progress and stop it.

use super::goal::Goal;
use super::micro::{all, with_batch};
use super::moves::{Cost, Group, MOVES, Move};
use crate::catalog::Os;
use crate::estimate::parts::{self, Passes, Turn, Whole};
use crate::estimate::time::Span;
use crate::estimate::{Estimate, Unsupported, estimate};
use crate::scenario::Scenario;
use crate::units::Bytes;

/// A search under way.
#[derive(Debug)]
pub struct Search {
    space: Space,
    goal: Goal,
    allowance: Bytes,
    tasks: Vec<Task>,
    turns: Vec<Turns>,
    front: Vec<Point>,
    tally: Tally,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Combinations of moves and micro-batches.
    pub space: u64,
    /// Of these: settled, by an estimate or by pruning.
    pub settled: u64,
    /// Networks run on the tape.
    pub estimates: u64,
    /// Combinations whose two halves were added up.
    pub sums: u64,
    /// Not possible together, or no other than one that is counted.
    pub impossible: u64,
    /// Pruned: a smaller micro-batch already needs more than there is, and memory does not fall as it grows.
    pub too_large: u64,
    /// Pruned: needs at least as much memory as a smaller micro-batch and at least the time of a larger one, and something
    /// found is better than both.
    pub dominated: u64,
    pub done: bool,
}

/// A combination on the front: nothing that needs less memory is faster.
#[derive(Clone, Debug)]
pub struct Point {
    pub peak: Bytes,
    pub time: Span,
    choice: Choice,
}

/// A point estimated in full.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub scenario: Scenario,
    pub moves: Vec<&'static Move>,
    pub estimate: Estimate,
    pub time: Span,
    /// Whether it meets the goal, allocator and all.
    pub fits: bool,
}

/// What a finished search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The fastest on the front that meets the goal; `None` where nothing fits.
    pub best: Option<Candidate>,
    /// The front by allocated peak, the fastest first.
    pub front: Vec<Candidate>,
    pub tally: Tally,
}

/// A combination: a place in each axis, 0 being "as it is", and a micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    network: Vec<usize>,
    micro_batch: u64,
    turn: usize,
    in_backward: bool,
}

/// The combinations there are.
#[derive(Debug)]
struct Space {
    base: Scenario,
    /// From the largest to the smallest.
    batches: Vec<u64>,
    /// What changes the passes through the network.
    axes: Vec<Vec<&'static Move>>,
    /// Sets of moves that change the optimizer's turn alone; the first is empty.
    turns: Vec<Vec<&'static Move>>,
    /// The move that steps each parameter inside backward, where it may be taken.
    in_backward: Option<&'static Move>,
}

/// What is still to do; the last first.
#[derive(Debug)]
enum Task {
    /// Look at the networks from this one on.
    Networks(Vec<usize>),
    /// Batches between two that are known, by their places: the larger, the smaller, and what these come to.
    Between(Box<Between>),
}

#[derive(Debug)]
struct Between {
    network: Vec<usize>,
    turns: usize,
    /// Of the larger batch: nothing between is faster.
    large: usize,
    fastest: Whole,
    /// Of the smaller batch: nothing between needs less.
    small: usize,
    lowest: Whole,
}

/// The optimizer's turns for one set of parameters.
#[derive(Debug)]
struct Turns {
    key: Scenario,
    bare: Turn,
    all: Vec<Option<TurnOf>>,
}

#[derive(Clone, Debug)]
enum TurnOf {
    Known(Box<Turn>),
    /// The optimizer works inside backward: there is no turn of its own.
    InBackward,
}

impl Search {
    /// A search over all moves that cost at most this much.
    pub fn new(scenario: &Scenario, goal: Goal, most: Cost) -> Result<Self, Unsupported> {
        let allowance = goal.allowance(scenario)?;
        let space = Space::new(scenario, most);
        let first = vec![0; space.axes.len()];
        Ok(Self {
            tally: Tally {
                space: space.size(),
                ..Tally::default()
            },
            space,
            goal,
            allowance,
            tasks: vec![Task::Networks(first)],
            turns: Vec::new(),
            front: Vec::new(),
        })
    }

    /// Works until about this many networks have been run, or until it is done.
    pub fn step(&mut self, budget: u64) -> Result<Tally, Unsupported> {
        let until = self.tally.estimates.saturating_add(budget.max(1));
        while self.tally.estimates < until {
            match self.tasks.pop() {
                Some(Task::Networks(network)) => self.network(network)?,
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

    /// Runs to the end and estimates what is on the front in full.
    pub fn finish(mut self) -> Result<Found, Unsupported> {
        while !self.step(u64::MAX / 2)?.done {}
        let front = self
            .front
            .iter()
            .filter_map(|point| self.candidate(point).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Found {
            best: front.iter().find(|it| it.fits).cloned(),
            front,
            tally: self.tally,
        })
    }

    /// The point's scenario with a full estimate.
    fn candidate(&self, point: &Point) -> Result<Option<Candidate>, Unsupported> {
        let Some((scenario, moves)) = self.space.scenario(&point.choice) else {
            return Ok(None);
        };
        let estimate = estimate(&scenario)?;
        Ok(Some(Candidate {
            fits: self.goal.met(&estimate),
            scenario,
            moves,
            estimate,
            time: point.time,
        }))
    }

    /// Looks at one network: its smallest batch, and the largest that may fit; leaves the next network to do.
    fn network(&mut self, network: Vec<usize>) -> Result<(), Unsupported> {
        if let Some(next) = self.space.after(&network) {
            self.tasks.push(Task::Networks(next));
        }
        let each = self.space.of_a_batch();
        let all = self.space.of_a_network();
        let Some(smallest) = self.space.batches.len().checked_sub(1) else {
            return Ok(());
        };
        let Some(scenario) = self.space.network(&network, smallest) else {
            self.tally.impossible += all;
            self.tally.settled += all;
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
        let lowest = parts::at_least(&low);
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
            let least = parts::at_least(&passes);
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
    fn between(&mut self, it: Between) -> Result<(), Unsupported> {
        let inside = it.small - it.large - 1;
        if inside == 0 {
            return Ok(());
        }
        let fastest = self.fastest_turn(it.turns);
        let better = |point: &Point| {
            point.peak <= it.lowest.peak
                && point.time.expected.get() <= it.fastest.step.expected.get() + fastest
        };
        if self.front.iter().any(better) {
            let pruned = inside as u64 * self.space.of_a_batch();
            self.tally.dominated += pruned;
            self.tally.settled += pruned;
            return Ok(());
        }
        let middle = it.large + (it.small - it.large) / 2;
        let Some(scenario) = self.space.network(&it.network, middle) else {
            return Ok(());
        };
        let passes = self.passes(&scenario)?;
        let least = parts::at_least(&passes);
        self.sum(&it.network, middle, &passes, it.turns)?;
        self.tasks.push(Task::Between(Box::new(Between {
            network: it.network.clone(),
            turns: it.turns,
            large: middle,
            fastest: least,
            small: it.small,
            lowest: it.lowest,
        })));
        self.tasks.push(Task::Between(Box::new(Between {
            small: middle,
            lowest: least,
            ..it
        })));
        Ok(())
    }

    /// The least that any optimizer can make of passes without accumulation: one inside backward never holds all gradients.
    fn at_once_at_least(&self, passes: &Passes) -> Bytes {
        let least = parts::at_least(passes).peak;
        if self.space.in_backward.is_some() {
            least - passes.gradients()
        } else {
            least
        }
    }

    fn passes(&mut self, scenario: &Scenario) -> Result<Passes, Unsupported> {
        self.tally.estimates += 1;
        parts::passes(&parts::of_passes(scenario))
    }

    /// Seconds of the shortest of these turns.
    fn fastest_turn(&self, turns: usize) -> f64 {
        let all = self.turns.get(turns).into_iter().flat_map(|it| &it.all);
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
                Some((bare, TurnOf::Known(it))) => {
                    self.tally.sums += 1;
                    let whole = parts::together(passes, &it, &bare);
                    self.offer(whole, choice.clone());
                    self.in_backward(choice, passes, &whole)?;
                }
                Some((_, TurnOf::InBackward)) => match self.space.scenario(&choice) {
                    Some((scenario, _)) => {
                        self.tally.estimates += 1;
                        self.offer(parts::whole(&scenario)?, choice);
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
            let whole = parts::whole(&scenario)?;
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
        let as_good = |it: &Point| it.peak <= whole.peak && it.time.expected.get() <= seconds;
        if self.front.iter().any(as_good) {
            return;
        }
        self.front
            .retain(|it| it.peak < whole.peak || it.time.expected.get() < seconds);
        let at = self
            .front
            .partition_point(|it| it.time.expected.get() < seconds);
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
        let key = parts::of_turn(scenario);
        if let Some(at) = self.turns.iter().position(|it| it.key == key) {
            return Ok(at);
        }
        let bare = parts::turn(&parts::of_bare_turn(scenario))?;
        let mut all = Vec::new();
        for moves in &self.space.turns {
            let changed = moves
                .iter()
                .try_fold(scenario.clone(), |now, it| (it.apply)(&now));
            all.push(match changed {
                Some(changed) if parts::separable(&changed) => {
                    self.tally.estimates += 1;
                    Some(TurnOf::Known(Box::new(parts::turn(&changed)?)))
                }
                Some(_) => Some(TurnOf::InBackward),
                None => None,
            });
        }
        self.turns.push(Turns { key, bare, all });
        Ok(self.turns.len() - 1)
    }
}

impl Space {
    fn new(scenario: &Scenario, most: Cost) -> Self {
        let mut base = scenario.clone();
        // An option like others.
        base.training.optimizer_in_backward = false;
        // Its effect is on what is reserved, which a search over peaks cannot tell: it costs nothing, so it is on.
        base.runtime.expandable_segments |= base.hardware.os == Os::Linux;
        let batches = all(&base);
        let largest = batches
            .first()
            .map_or(base.clone(), |it| with_batch(&base, *it));
        let affordable: Vec<&'static Move> = MOVES
            .iter()
            .filter(|it| it.cost <= most && it.group != Group::Allocator)
            .collect();
        let mut starts = vec![base.clone(), largest];
        starts.extend(affordable.iter().filter_map(|it| (it.apply)(&base)));
        let possible = |it: &&&Move| starts.iter().any(|start| (it.apply)(start).is_some());
        let of = |group: Group| -> Vec<&'static Move> {
            let of_group = affordable.iter().filter(|it| it.group == group);
            of_group.filter(|it| possible(it)).copied().collect()
        };
        let mut axes = Vec::new();
        let mut turns: Vec<Vec<&'static Move>> = vec![Vec::new()];
        for group in Group::ALL {
            let moves = of(group);
            if group == Group::Stepping || moves.is_empty() {
                continue;
            }
            if group.is_of_the_turn() {
                let with: Vec<_> = turns
                    .iter()
                    .flat_map(|set| moves.iter().map(move |it| [&set[..], &[*it]].concat()))
                    .collect();
                turns.extend(with);
            } else {
                axes.push(moves);
            }
        }
        Self {
            base,
            batches,
            axes,
            turns,
            in_backward: of(Group::Stepping).first().copied(),
        }
    }

    fn size(&self) -> u64 {
        let networks = self
            .axes
            .iter()
            .fold(1_u64, |all, axis| all.saturating_mul(axis.len() as u64 + 1));
        networks.saturating_mul(self.of_a_network())
    }

    fn of_a_network(&self) -> u64 {
        self.of_a_batch().saturating_mul(self.batches.len() as u64)
    }

    fn of_a_batch(&self) -> u64 {
        self.turns.len() as u64 * (1 + u64::from(self.in_backward.is_some()))
    }

    /// The next network, as one counts.
    fn after(&self, network: &[usize]) -> Option<Vec<usize>> {
        let mut next = network.to_vec();
        for (place, axis) in next.iter_mut().zip(&self.axes).rev() {
            if *place < axis.len() {
                *place += 1;
                return Some(next);
            }
            *place = 0;
        }
        None
    }

    /// The network with the batch at this place; `None` where its moves are not possible together.
    fn network(&self, network: &[usize], batch: usize) -> Option<Scenario> {
        let start = with_batch(&self.base, *self.batches.get(batch)?);
        self.moves(network)
            .try_fold(start, |now, it| (it.apply)(&now))
    }

    fn moves<'a>(&'a self, network: &'a [usize]) -> impl Iterator<Item = &'static Move> + 'a {
        let chosen = network.iter().zip(&self.axes);
        chosen.filter_map(|(place, axis)| axis.get(place.checked_sub(1)?).copied())
    }

    /// A combination's scenario and its moves.
    fn scenario(&self, choice: &Choice) -> Option<(Scenario, Vec<&'static Move>)> {
        let mut moves: Vec<&'static Move> = self.moves(&choice.network).collect();
        moves.extend(self.turns.get(choice.turn)?);
        moves.extend(self.in_backward.filter(|_| choice.in_backward));
        let start = with_batch(&self.base, choice.micro_batch);
        let scenario = moves.iter().try_fold(start, |now, it| (it.apply)(&now))?;
        Some((scenario, moves))
    }
}
