//! Searches for the smallest set of changes that fits.

use super::super::goal::{Goal, Quick};
use super::super::micro::{first_that_fits, smaller, with_batch};
use super::super::moves::{Cost, Group, MOVES, Move};
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::Unsupported;
use headroom_core::estimate::time::Span;
use headroom_scenario::Scenario;

/// Another set of changes, by the ids of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub ids: Vec<&'static str>,
    pub scenario: Scenario,
    /// Of the allocated peak.
    pub peak: Bytes,
    pub time: Span,
}

/// The id of the step that reduces the micro-batch.
pub const MICRO_BATCH: &str = "micro-batch";

/// A set of moves, at most one per group, and whether the micro-batch may shrink.
#[derive(Clone, Debug, Default)]
pub struct Set {
    pub moves: Vec<&'static Move>,
    /// The micro-batch, if it is not the run's own.
    pub micro_batch: Option<u64>,
}

impl Set {
    /// The changed run; `None` if one of the moves is impossible together with the others, or does nothing.
    pub fn applied(&self, scenario: &Scenario) -> Option<Scenario> {
        let start = match self.micro_batch {
            Some(size) => with_batch(scenario, size),
            None => scenario.clone(),
        };
        let by_group = sorted(self.moves.iter(), |a, b| a.group.cmp(&b.group));
        by_group
            .into_iter()
            .try_fold(start, |now, change| change.on(&now))
    }

    fn ids(&self) -> Vec<&'static str> {
        let batch = self.micro_batch.map(|_| MICRO_BATCH);
        self.moves.iter().map(|mv| mv.id).chain(batch).collect()
    }
}

pub struct Finder<'a> {
    pub scenario: &'a Scenario,
    pub goal: Goal,
    /// The most that may be allocated.
    pub allowance: Bytes,
    pub quick: Quick,
    /// The remaining number of sets to try.
    pub left: u32,
}

/// Called with each set of moves.
type Visitor<'a, F> = dyn FnMut(&mut F, &[&'static Move]) -> Result<(), Unsupported> + 'a;

/// A set that fits, the changed run, its peak and its step time.
type Found = (Set, Route);

impl Finder<'_> {
    pub const MOST: u32 = 6_000;

    /// The best of the smallest sets whose most expensive move costs `most`, and the others.
    pub fn shortest(&mut self, most: Cost) -> Result<Option<(Set, Vec<Route>)>, Unsupported> {
        let moves = self.possible(most);
        let batches = smaller(self.scenario);
        let may_shrink = most >= Cost::Time && batches.len() > 1;
        let longest = moves.len() + usize::from(may_shrink);
        if !self.could_fit(&moves, may_shrink)? {
            return Ok(None);
        }
        for length in 1..=longest {
            let mut found: Vec<Found> = Vec::new();
            for shrinks in [false, true] {
                if shrinks && !may_shrink {
                    continue;
                }
                let count = length - usize::from(shrinks);
                let mut chosen = Vec::new();
                let dear = shrinks && most == Cost::Time;
                self.each(
                    &moves,
                    count,
                    most,
                    dear,
                    &mut chosen,
                    &mut |finder, set| {
                        found.extend(finder.fitting(set, shrinks.then_some(&batches))?);
                        Ok(())
                    },
                )?;
            }
            let found = sorted(found, |(_, a), (_, b)| {
                let time = a.time.expected.get().total_cmp(&b.time.expected.get());
                time.then(a.peak.cmp(&b.peak))
            });
            let mut found = found.into_iter();
            if let Some((set, _)) = found.next() {
                const OTHERS: usize = 3;
                return Ok(Some((
                    set,
                    found.map(|found| found.1).take(OTHERS).collect(),
                )));
            }
            if self.left == 0 {
                return self.greedy(&moves, may_shrink);
            }
        }
        Ok(None)
    }

    /// Moves up to this cost that are possible in the run as it is, or after another move.
    fn possible(&self, most: Cost) -> Vec<&'static Move> {
        let one_pass = {
            let all = self
                .scenario
                .data
                .micro_batch
                .saturating_mul(self.scenario.training.accumulation);
            with_batch(self.scenario, all)
        };
        let affordable: Vec<&Move> = MOVES
            .iter()
            .filter(|known| known.cost <= most && self.goal.allowed.has(known))
            .collect();
        let mut starts = vec![self.scenario.clone(), one_pass];
        starts.extend(affordable.iter().filter_map(|mv| mv.on(self.scenario)));
        affordable
            .into_iter()
            .filter(|mv| starts.iter().any(|start| mv.on(start).is_some()))
            .collect()
    }

    /// Calls `then` with every set of `count` moves of different groups whose most expensive one costs `most` (or less, if
    /// something else in the set costs that already).
    fn each(
        &mut self,
        moves: &[&'static Move],
        count: usize,
        most: Cost,
        dear: bool,
        chosen: &mut Vec<&'static Move>,
        then: &mut Visitor<'_, Self>,
    ) -> Result<(), Unsupported> {
        if count == 0 {
            if dear && self.left > 0 {
                self.left -= 1;
                then(self, chosen)?;
            }
            return Ok(());
        }
        for (at, change) in moves.iter().enumerate() {
            if self.left == 0 {
                return Ok(());
            }
            if chosen.iter().any(|other| other.group == change.group) {
                continue;
            }
            chosen.push(change);
            let rest = &moves[at + 1..];
            self.each(
                rest,
                count - 1,
                most,
                dear || change.cost == most,
                chosen,
                then,
            )?;
            chosen.pop();
        }
        Ok(())
    }

    /// The set with the largest of these micro-batches that fits, or with the run's own; `None` if none fits.
    fn fitting(
        &mut self,
        moves: &[&'static Move],
        batches: Option<&Vec<u64>>,
    ) -> Result<Option<Found>, Unsupported> {
        let mut set = Set {
            moves: moves.to_vec(),
            micro_batch: None,
        };
        let Some(batches) = batches else {
            return self.verified(set);
        };
        // The first is the run's own.
        let batches = &batches[1..];
        let mut place = first_that_fits(batches, |size| {
            set.micro_batch = Some(size);
            self.may_fit(&set)
        })?;
        while let Some(size) = place {
            set.micro_batch = Some(size);
            if let Some(found) = self.verified(set.clone())? {
                return Ok(Some(found));
            }
            place = batches.iter().copied().find(|smaller| *smaller < size);
        }
        Ok(None)
    }

    /// Whether the allocated peak is within the allowance.
    fn may_fit(&mut self, set: &Set) -> Result<bool, Unsupported> {
        match set.applied(self.scenario) {
            Some(changed) => Ok(self.quick.combined(&changed)?.peak <= self.allowance),
            None => Ok(false),
        }
    }

    /// The set, if its full estimate meets the goal.
    fn verified(&mut self, set: Set) -> Result<Option<Found>, Unsupported> {
        let Some(changed) = set.applied(self.scenario) else {
            return Ok(None);
        };
        let whole = self.quick.combined(&changed)?;
        if whole.peak > self.allowance || !self.goal.met_by(&changed)? {
            return Ok(None);
        }
        let route = Route {
            ids: set.ids(),
            scenario: changed,
            peak: whole.peak,
            time: whole.step,
        };
        Ok(Some((set, route)))
    }

    /// Whether any set can fit, by greedily adding moves that lower the peak: if this ends above the allowance, and so does
    /// every pair of moves from there, sets are not tried one by one.
    fn could_fit(
        &mut self,
        moves: &[&'static Move],
        may_shrink: bool,
    ) -> Result<bool, Unsupported> {
        let set = self.lowest(moves, may_shrink)?;
        self.may_fit(&set)
    }

    /// The set with the lowest peak reachable by single exchanges.
    fn lowest(&mut self, moves: &[&'static Move], may_shrink: bool) -> Result<Set, Unsupported> {
        let mut set = Set {
            moves: Vec::new(),
            micro_batch: may_shrink.then_some(1),
        };
        let mut lowest = self.height(&set)?;
        loop {
            let mut next: Option<(Set, _)> = None;
            for mv in moves {
                for whole_batch in [false, true] {
                    // Only an optimizer inside backward rules out accumulation.
                    let accumulates = mv.group != Group::Stepping;
                    if whole_batch && (accumulates || set.micro_batch.is_none()) {
                        continue;
                    }
                    let mut changed = set.clone();
                    if whole_batch {
                        changed.micro_batch = None;
                    }
                    let present = changed.moves.iter().position(|other| other.id == mv.id);
                    if let Some(at) = present {
                        changed.moves.remove(at);
                    } else {
                        changed.moves.retain(|other| other.group != mv.group);
                        changed.moves.push(mv);
                    }
                    let height = self.height(&changed)?;
                    if height < lowest {
                        lowest = height;
                        next = Some((changed, height));
                    }
                }
            }
            if may_shrink {
                // Smaller micro-batches do not always need less: accumulating unsharded gradients may need more.
                let mut changed = set.clone();
                changed.micro_batch = match set.micro_batch {
                    Some(_) => None,
                    None => Some(1),
                };
                let height = self.height(&changed)?;
                if height < lowest {
                    lowest = height;
                    next = Some((changed, height));
                }
            }
            match next {
                Some((better, _)) => set = better,
                None => return Ok(set),
            }
        }
    }

    /// The peak first; on a tie the lower of the step's two parts, so that two moves that only help together are found.
    fn height(&mut self, set: &Set) -> Result<(Bytes, Bytes), Unsupported> {
        match set.applied(self.scenario) {
            Some(changed) => {
                let whole = self.quick.combined(&changed)?;
                Ok((whole.peak, whole.in_passes.min(whole.in_update)))
            }
            None => Ok((Bytes::MAX, Bytes::MAX)),
        }
    }

    /// For too many sets: the set with the lowest peak, without the moves that are not needed, the most expensive removed
    /// first.
    fn greedy(
        &mut self,
        moves: &[&'static Move],
        may_shrink: bool,
    ) -> Result<Option<(Set, Vec<Route>)>, Unsupported> {
        let mut set = self.lowest(moves, may_shrink)?;
        let batches = set.micro_batch.map(|_| smaller(self.scenario));
        let all = sorted(set.moves.clone(), |a, b| b.cost.cmp(&a.cost));
        for mv in all {
            let mut fewer = set.clone();
            fewer.moves.retain(|other| other.id != mv.id);
            if self.fitting(&fewer.moves, batches.as_ref())?.is_some() {
                set = fewer;
            }
        }
        let found = self.fitting(&set.moves, batches.as_ref())?;
        Ok(found.map(|(set, _)| (set, Vec::new())))
    }

    /// The set closest to fitting, if none fits.
    pub fn smallest(&mut self) -> Result<Set, Unsupported> {
        let moves = self.possible(Cost::Results);
        let may_shrink = smaller(self.scenario).len() > 1;
        self.lowest(&moves, may_shrink)
    }
}
