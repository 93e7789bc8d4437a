//! Explores a space, the most promising networks first.
//!
//! A network is a run without its micro-batch. No micro-batch of a network is faster than all samples at once, so networks are
//! taken in the order of that bound, and of each the largest micro-batch that may fit is found by bisection, until the next
//! bound is above the fastest run.

use std::rc::Rc;

use super::choose::{self, Chosen, Queue};
use super::edit::{Axis, Edit};
use super::evaluate::{Evaluator, Quick, with, with_all};
use super::space::layouts;

/// A run that may fit.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub edits: Vec<Edit>,
    pub quick: Quick,
}

/// How much slower than the fastest a run may be to be of interest for the room that it leaves.
pub const ROOM: f64 = 1.10;

/// All runs that differ only by their micro-batch and their optimizer.
#[derive(Clone, Debug)]
pub struct Network {
    pub edits: Vec<Edit>,
    pub sizes: Rc<Vec<u64>>,
    /// The step time of no run of it is less.
    pub bound: f64,
    /// The peak with all samples at once, which orders networks by what they save of a sample.
    pub whole: u64,
}

/// The axes on which every value is combined with every value of the others.
#[derive(Debug, Default)]
struct Axes {
    checkpointing: Vec<Option<Edit>>,
    losses: Vec<Option<Edit>>,
    optimizers: Vec<Option<Edit>>,
    in_backward: Option<Edit>,
}

/// Networks that have a layout, a precision and a loss in common.
#[derive(Debug)]
struct Family {
    prefix: Vec<Edit>,
    sizes: Rc<Vec<u64>>,
    loss: Option<Edit>,
}

/// An exploration under way.
#[derive(Debug)]
pub struct Exploration {
    axes: Axes,
    /// What every run has.
    always: Vec<Edit>,
    /// Divisions of a model that are ranked by their first layout, each with the others.
    divisions: Vec<Vec<Vec<Edit>>>,
    divided: Vec<Ranked>,
    /// Layouts of the best divisions.
    layouts: Vec<Vec<Edit>>,
    ranked: Vec<Ranked>,
    /// Slower layouts, for when what seemed to fit in the best ones does not.
    slower: Vec<Ranked>,
    families: Vec<Family>,
    waiting: Vec<Network>,
    /// All networks, for the room that they leave.
    pub networks: Vec<Network>,
    /// How many of them have waited.
    explored: usize,
    found: Queue,
    /// The fastest run so far that fits by its full estimate.
    verified: Option<Chosen>,
    /// The time of the fastest run that may fit and that is not accepted.
    refused: Option<f64>,
    /// Full estimates that were made.
    tries: usize,
    /// The fastest run that fits.
    pub fastest: Option<Chosen>,
    /// Ways to divide a copy that are not modelled for this run.
    unsplit: Vec<Axis>,
}

/// Layouts with the place of the first; if that does not fit, it is after all that do.
#[derive(Debug)]
struct Ranked {
    place: f64,
    layouts: Vec<Vec<Edit>>,
}

/// The place of a layout that does not fit, times how much it is over: after all that do.
const OVER: f64 = 1e9;

/// Layouts that are explored at once: those whose first run is at most so much slower than the best one's, and at most so many.
const SLOWER: f64 = 1.3;
const MOST: usize = 6;

/// How much slower a run may be that is accepted, if a faster one is not.
const RUNNABLE: f64 = 2.0;

/// Full estimates that are tried before giving up.
const TRIES: usize = 40;

fn optional(edits: Vec<Edit>) -> Vec<Option<Edit>> {
    std::iter::once(None)
        .chain(edits.into_iter().map(Some))
        .collect()
}

/// Those on axes that nothing is decided on: what is always changed is not undone.
fn free(always: &[Edit], edits: Vec<Edit>) -> Vec<Edit> {
    let taken = |axis: Axis| always.iter().any(|edit| edit.axis() == axis);
    let free = edits.into_iter().filter(|edit| !taken(edit.axis()));
    free.collect()
}

fn with_optional(edits: &[Edit], more: Option<Edit>) -> Vec<Edit> {
    more.map_or_else(|| edits.to_vec(), |edit| with(edits, edit))
}

impl Exploration {
    /// Of the runs that have all of these edits.
    pub fn new(evaluator: &Evaluator, always: &[Edit]) -> Self {
        let space = &evaluator.space;
        let free = |edits: Vec<Edit>| free(always, edits);
        let mut divisions = layouts(space);
        divisions.reverse();
        Self {
            axes: Axes {
                checkpointing: optional(free(space.checkpointing())),
                losses: optional(free(space.losses())),
                optimizers: optional(free(space.optimizers())),
                in_backward: space.in_backward(),
            },
            always: always.to_vec(),
            divisions,
            divided: Vec::new(),
            layouts: Vec::new(),
            ranked: Vec::new(),
            slower: Vec::new(),
            families: Vec::new(),
            waiting: Vec::new(),
            networks: Vec::new(),
            explored: 0,
            found: Queue::default(),
            verified: None,
            refused: None,
            tries: 0,
            fastest: None,
            unsplit: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.divisions.is_empty()
            && self.layouts.is_empty()
            && self.ranked.is_empty()
            && self.families.is_empty()
            && self.waiting.is_empty()
            && self.found.first().is_none()
            && self.verified.is_none()
            && self.slower.is_empty()
            && self.divided.is_empty()
    }

    /// The network that saves most of a sample, once all are known.
    pub fn frugal(&self) -> Option<&Network> {
        let by = |network: &&Network| (network.whole, network.edits.len());
        self.networks.iter().min_by_key(by)
    }

    /// Explores a little.
    pub fn step(&mut self, evaluator: &mut Evaluator) {
        if let Some(division) = self.divisions.pop() {
            let alone = self.divided.is_empty() && self.divisions.is_empty();
            // By the layout that shards most of those that can run.
            let place = if alone {
                Some(0.0)
            } else {
                let mut layouts = division.iter();
                layouts.find_map(|layout| self.place_of_division(evaluator, layout))
            };
            self.divided.extend(place.map(|place| Ranked {
                place,
                layouts: division,
            }));
            if self.divisions.is_empty() {
                let best = best(&mut self.divided, MOST);
                self.layouts = best.into_iter().flat_map(|it| it.layouts).collect();
            }
        } else if let Some(layout) = self.layouts.pop() {
            let alone = self.ranked.is_empty() && self.layouts.is_empty();
            let place = if alone {
                Some(0.0)
            } else {
                self.place(evaluator, &layout, Self::fitting)
            };
            self.ranked.extend(place.map(|place| Ranked {
                place,
                layouts: vec![layout],
            }));
            if self.layouts.is_empty() {
                self.slower.append(&mut self.ranked);
                self.ranked = best(&mut self.slower, MOST);
            }
        } else if let Some(ranked) = self.ranked.pop() {
            for layout in &ranked.layouts {
                self.open(evaluator, layout);
            }
        } else if let Some(family) = self.families.pop() {
            self.bound(evaluator, &family);
            if self.families.is_empty() {
                self.waiting = self.networks.split_off(self.explored);
                self.networks.extend_from_slice(&self.waiting);
                self.explored = self.networks.len();
                self.waiting.sort_by(|a, b| b.bound.total_cmp(&a.bound));
            }
        } else {
            self.next(evaluator);
        }
    }

    /// Explores the next network, or verifies the fastest run if no network can be faster. A run may turn out slower than it
    /// seemed, such as one whose optimizer pages: it then waits until nothing else can be faster.
    fn next(&mut self, evaluator: &mut Evaluator) {
        let earlier = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => a <= b,
            (a, _) => a.is_some(),
        };
        let found = self.found.first().map(|first| first.quick.seconds);
        let bound = self.waiting.last().map(|network| network.bound);
        let verified = self.verified.as_ref().map(|chosen| chosen.full.seconds);
        let settled = earlier(verified, found) && earlier(verified, bound);
        if settled || self.tries >= TRIES || found.is_none() && bound.is_none() {
            self.settle();
        } else if earlier(found, bound) {
            self.verify(evaluator);
        } else if let Some(network) = self.waiting.pop() {
            self.largest(evaluator, &network);
        }
    }

    /// Ends the exploration of these layouts. What seemed to fit in them may not have done so: as long as slower layouts and
    /// divisions may have a faster run than the fastest that is verified, they are explored too; not those that are much slower than
    /// a run that is not accepted, which is better known than left out.
    fn settle(&mut self) {
        self.waiting.clear();
        self.found = Queue::default();
        let verified = self.verified.as_ref();
        let refused = self.refused.map_or(OVER, |seconds| seconds * RUNNABLE);
        let limit = verified.map_or(refused, |fastest| fastest.full.seconds);
        let promising = |row: &Ranked| row.place < limit;
        self.slower.retain(promising);
        self.divided.retain(promising);
        self.tries = 0;
        self.ranked = best(&mut self.slower, MOST);
        if self.ranked.is_empty() {
            let next = best(&mut self.divided, MOST);
            self.layouts = next.into_iter().flat_map(|it| it.layouts).collect();
        }
        if self.ranked.is_empty() && self.layouts.is_empty() {
            self.fastest = self.verified.take();
        }
    }

    fn verify(&mut self, evaluator: &mut Evaluator) {
        let Some(first) = self.found.pop() else {
            return;
        };
        if !evaluator.is_accepted(&first.edits) {
            let seconds = first.quick.seconds;
            self.refused = Some(self.refused.map_or(seconds, |least| least.min(seconds)));
            return;
        }
        self.tries += 1;
        match choose::verified(evaluator, &first.edits) {
            Some(chosen) => {
                let best = self.verified.as_ref();
                if best.is_none_or(|best| chosen.full.seconds < best.full.seconds) {
                    self.verified = Some(chosen);
                }
            }
            None => {
                if let Some(smaller) = choose::smaller(evaluator, &first.edits) {
                    self.found.add(smaller);
                }
            }
        }
    }

    /// The place of a way to divide a copy; what is not modelled by itself is not tried with another.
    fn place_of_division(&mut self, evaluator: &mut Evaluator, layout: &[Edit]) -> Option<f64> {
        let ways: Vec<Axis> = layout
            .iter()
            .map(Edit::axis)
            .filter(|axis| (Axis::Tensor..=Axis::Expert).contains(axis))
            .collect();
        if ways.iter().any(|way| self.unsplit.contains(way)) {
            return None;
        }
        let as_it_is = |_: &Self, _: &mut Evaluator, run: Vec<Edit>, _: Edit| run;
        let place = self.place(evaluator, layout, as_it_is);
        if let ([way], None) = (&ways[..], place) {
            self.unsplit.push(*way);
        }
        place
    }

    /// The layout's place, by the fastest of its runs that save most, each changed by `then`; those that do not fit come last.
    /// `None` if it cannot run.
    fn place(
        &self,
        evaluator: &mut Evaluator,
        layout: &[Edit],
        then: impl Fn(&Self, &mut Evaluator, Vec<Edit>, Edit) -> Vec<Edit>,
    ) -> Option<f64> {
        let edits = with_all(&self.always, layout);
        let sizes = evaluator.space.micro_batches(&edits);
        let layers = self.axes.checkpointing.iter().flatten();
        let layers = layers
            .copied()
            .find(|edit| edit.id() == "checkpointing-layers");
        let saving = with_optional(&edits, layers);
        let loss = self.axes.losses.last().copied().flatten();
        // A copy that is divided keeps its loss, and not every network has layers that can be checkpointed.
        let mut ways = [with_optional(&saving, loss), saving, edits].into_iter();
        let size = Edit::MicroBatch(*sizes.last()?);
        let run = ways.find(|run| evaluator.quick(&with(run, size)).is_some())?;
        let run = then(self, evaluator, run, size);
        let mut place: Option<f64> = None;
        for size in sizes.iter().rev() {
            let Some(quick) = evaluator.quick(&with(&run, Edit::MicroBatch(*size))) else {
                continue;
            };
            if !quick.may_fit() {
                let over = quick.peak.get() as f64 / quick.room.get().max(1) as f64;
                return place.or(Some(OVER * over));
            }
            place = Some(place.map_or(quick.seconds, |best| best.min(quick.seconds)));
        }
        place
    }

    /// The run with what costs nothing, and with an optimizer that makes it fit, if it nearly fits without.
    fn fitting(&self, evaluator: &mut Evaluator, run: Vec<Edit>, size: Edit) -> Vec<Edit> {
        /// What toggles and optimizers save at most, roughly: states and the reference of four copies of the weights.
        const NEARLY: f64 = 2.0;
        let quick = evaluator.quick(&with(&run, size));
        let near = |quick: Quick| {
            !quick.may_fit() && quick.peak.get() as f64 <= NEARLY * quick.room.get() as f64
        };
        if !quick.is_some_and(near) {
            return run;
        }
        let run = with_toggles(evaluator, &run);
        let ways = self.axes.optimizers.iter();
        let mut ways = ways.map(|optimizer| with_optional(&run, *optimizer));
        let found = ways.find(|run| {
            let quick = evaluator.quick(&with(run, size));
            quick.is_some_and(|quick| quick.may_fit())
        });
        found.unwrap_or(run)
    }

    /// The families of a layout.
    fn open(&mut self, evaluator: &mut Evaluator, layout: &[Edit]) {
        let layout = with_all(&self.always, layout);
        let sizes = Rc::new(evaluator.space.micro_batches(&layout));
        for precision in optional(free(&self.always, evaluator.space.precisions())) {
            let prefix = with_optional(&layout, precision);
            let compiled = evaluator.space.compiled();
            for compile in compiled {
                self.families.push(Family {
                    prefix: with(&prefix, compile),
                    sizes: sizes.clone(),
                    loss: None,
                });
            }
            let prefix = with_toggles(evaluator, &prefix);
            for loss in &self.axes.losses {
                self.families.push(Family {
                    prefix: prefix.clone(),
                    sizes: sizes.clone(),
                    loss: *loss,
                });
            }
        }
    }

    /// The family's networks with their bounds.
    fn bound(&mut self, evaluator: &mut Evaluator, family: &Family) {
        let prefix = with_optional(&family.prefix, family.loss);
        let pipelined = prefix
            .iter()
            .any(|edit| matches!(edit, Edit::Pipeline { .. }))
            || evaluator.space.run.parallel.pp > 1;
        for checkpointing in &self.axes.checkpointing {
            let edits = with_optional(&prefix, *checkpointing);
            // A pipeline is idle longer with few large micro-batches, so each size counts.
            let count = if pipelined { family.sizes.len() } else { 1 };
            let mut bound: Option<(f64, u64)> = None;
            for size in family.sizes.iter().take(count) {
                let whole = with(&edits, Edit::MicroBatch(*size));
                for optimizer in &self.axes.optimizers {
                    let Some(quick) = evaluator.quick(&with_optional(&whole, *optimizer)) else {
                        continue;
                    };
                    let (least, peak) = bound.unwrap_or((f64::INFINITY, u64::MAX));
                    let peak = peak.min(quick.peak.get());
                    bound = Some((least.min(quick.seconds), peak));
                }
            }
            self.networks.extend(bound.map(|(bound, whole)| Network {
                edits,
                sizes: family.sizes.clone(),
                bound,
                whole,
            }));
        }
    }

    /// The largest micro-batch that may fit, with each optimizer.
    fn largest(&mut self, evaluator: &mut Evaluator, network: &Network) {
        for optimizer in self.axes.optimizers.clone() {
            let run = with_optional(&network.edits, optimizer);
            if run.iter().any(|edit| matches!(edit, Edit::Pipeline { .. })) {
                self.upwards(evaluator, &run, &network.sizes);
            } else {
                self.bisected(evaluator, &run, &network.sizes);
            }
        }
    }

    fn upwards(&mut self, evaluator: &mut Evaluator, run: &[Edit], sizes: &[u64]) {
        for size in sizes.iter().rev() {
            let edits = with(run, Edit::MicroBatch(*size));
            let Some(quick) = evaluator.quick(&edits) else {
                continue;
            };
            self.offer(evaluator, edits, quick);
            if !quick.may_fit() {
                return;
            }
        }
    }

    fn bisected(&mut self, evaluator: &mut Evaluator, run: &[Edit], sizes: &[u64]) {
        let at = |evaluator: &mut Evaluator, size: u64| {
            let edits = with(run, Edit::MicroBatch(size));
            let quick = evaluator.quick(&edits);
            quick.map(|quick| (edits, quick))
        };
        let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
            return;
        };
        // All samples at once, without accumulation: no gradients are alive in the forward pass.
        if let Some((edits, quick)) = at(evaluator, *first) {
            let known = self.found.first().map(|first| first.quick.seconds);
            let faster = known.is_none_or(|known| quick.seconds < known);
            self.offer(evaluator, edits.clone(), quick);
            if quick.may_fit() {
                return;
            }
            let freed = quick.without_gradients <= quick.room;
            if let Some(in_backward) = self.axes.in_backward.filter(|_| freed && faster) {
                let edits = with(&edits, in_backward);
                if let Some(quick) = evaluator.quick(&edits) {
                    self.offer(evaluator, edits, quick);
                }
            }
        }
        if sizes.len() < 2 {
            return;
        }
        let Some((edits, quick)) = at(evaluator, *last) else {
            return;
        };
        self.offer(evaluator, edits, quick);
        if !quick.may_fit() {
            return;
        }
        let (mut low, mut high) = (1, sizes.len() - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(size) = sizes.get(middle) else {
                return;
            };
            match at(evaluator, *size) {
                Some((edits, quick)) if quick.may_fit() => {
                    self.offer(evaluator, edits, quick);
                    high = middle;
                }
                _ => low = middle + 1,
            }
        }
    }

    fn offer(&mut self, evaluator: &mut Evaluator, edits: Vec<Edit>, quick: Quick) {
        let strict = evaluator.space.locks.is_strict();
        if quick.may_fit() && (!strict || evaluator.is_accepted(&edits)) {
            self.found.add(Candidate { edits, quick });
        }
    }
}

/// Takes the best of these, at most so many, the best last.
fn best(all: &mut Vec<Ranked>, most: usize) -> Vec<Ranked> {
    all.sort_by(|a, b| a.place.total_cmp(&b.place));
    let first = all.first().map_or(0.0, |first| first.place);
    let near = all.iter().filter(|row| row.place <= first * SLOWER);
    let near = near.count().clamp(1, most).min(all.len());
    let mut taken: Vec<Ranked> = all.drain(..near).collect();
    taken.reverse();
    taken
}

/// The prefix with each change that costs neither memory nor time there.
fn with_toggles(evaluator: &mut Evaluator, prefix: &[Edit]) -> Vec<Edit> {
    let mut all = prefix.to_vec();
    let spare = |quick: Quick| quick.room.get() as f64 - quick.peak.get() as f64;
    for toggle in evaluator.space.toggles() {
        if prefix.iter().any(|edit| edit.axis() == toggle.axis()) {
            continue;
        }
        let added = with(&all, toggle);
        let better = match (evaluator.quick(&all), evaluator.quick(&added)) {
            (Some(before), Some(after)) => {
                spare(after) >= spare(before) && after.seconds <= before.seconds * 1.000_001
            }
            (None, Some(_)) => true,
            _ => false,
        };
        if better {
            all = added;
        }
    }
    all
}
