//! Ranks the layouts of a space: first the divisions of a model by their first layout, then each layout of the best divisions.

use super::super::division::layouts;
use super::super::edit::{Axis, Edit};
use super::super::evaluate::{Evaluator, Quick, with, with_all};
use super::super::space::Space;
use super::axes::{Axes, with_optional, with_toggles};

/// The place of a layout that does not fit, times how much it is over: after all that do.
pub(super) const OVER: f64 = 1e9;

/// Layouts that are explored at once: those whose first run is at most so much slower than the best one's, and at most so many.
const SLOWER: f64 = 1.3;
const MOST: usize = 6;

/// A ranking under way.
#[derive(Debug)]
pub(super) struct Layouts {
    /// Divisions of a model that have no place yet, each with its layouts.
    divisions: Vec<Vec<Vec<Edit>>>,
    divided: Vec<Ranked>,
    /// Layouts of the best divisions that have no place yet.
    waiting: Vec<Vec<Edit>>,
    ranked: Vec<Ranked>,
    /// Slower layouts, for when what seemed to fit in the best ones does not.
    slower: Vec<Ranked>,
    /// Ways to divide a copy that are not modelled for this run.
    unsplit: Vec<Axis>,
}

/// Layouts with the place of the first.
#[derive(Debug)]
struct Ranked {
    place: f64,
    layouts: Vec<Vec<Edit>>,
}

impl Layouts {
    pub(super) fn new(space: &Space) -> Self {
        let mut divisions = layouts(space);
        divisions.reverse();
        Self {
            divisions,
            divided: Vec::new(),
            waiting: Vec::new(),
            ranked: Vec::new(),
            slower: Vec::new(),
            unsplit: Vec::new(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        !self.is_ranking() && self.slower.is_empty() && self.divided.is_empty()
    }

    /// Whether there are layouts to rank or to take now, before what waits for nothing else to fit.
    pub(super) fn is_ranking(&self) -> bool {
        !(self.divisions.is_empty() && self.waiting.is_empty() && self.ranked.is_empty())
    }

    /// Ranks one more division or layout; once all have a place, takes the next of the best.
    pub(super) fn step(&mut self, evaluator: &mut Evaluator, axes: &Axes) -> Vec<Vec<Edit>> {
        if let Some(division) = self.divisions.pop() {
            self.rank_division(evaluator, axes, division);
        } else if let Some(layout) = self.waiting.pop() {
            self.rank_layout(evaluator, axes, layout);
        } else if let Some(ranked) = self.ranked.pop() {
            return ranked.layouts;
        }
        Vec::new()
    }

    /// Goes on with slower layouts and divisions that may have a run below this step time; there may be none.
    pub(super) fn go_on(&mut self, limit: f64) {
        let promising = |row: &Ranked| row.place < limit;
        self.slower.retain(promising);
        self.divided.retain(promising);
        self.ranked = best(&mut self.slower);
        if self.ranked.is_empty() {
            self.divide();
        }
    }

    fn divide(&mut self) {
        let best = best(&mut self.divided);
        self.waiting = best.into_iter().flat_map(|it| it.layouts).collect();
    }

    fn rank_division(&mut self, evaluator: &mut Evaluator, axes: &Axes, layouts: Vec<Vec<Edit>>) {
        let alone = self.divided.is_empty() && self.divisions.is_empty();
        // By the layout that shards most of those that can run.
        let place = if alone {
            Some(0.0)
        } else {
            let mut layouts = layouts.iter();
            layouts.find_map(|layout| self.place_of_division(evaluator, axes, layout))
        };
        self.divided
            .extend(place.map(|place| Ranked { place, layouts }));
        if self.divisions.is_empty() {
            self.divide();
        }
    }

    fn rank_layout(&mut self, evaluator: &mut Evaluator, axes: &Axes, layout: Vec<Edit>) {
        let alone = self.ranked.is_empty() && self.waiting.is_empty();
        let place = if alone {
            Some(0.0)
        } else {
            place(evaluator, axes, &layout, fitting)
        };
        self.ranked.extend(place.map(|place| Ranked {
            place,
            layouts: vec![layout],
        }));
        if self.waiting.is_empty() {
            self.slower.append(&mut self.ranked);
            self.ranked = best(&mut self.slower);
        }
    }

    /// The place of a way to divide a copy; what is not modelled by itself is not tried with another.
    fn place_of_division(
        &mut self,
        evaluator: &mut Evaluator,
        axes: &Axes,
        layout: &[Edit],
    ) -> Option<f64> {
        let ways: Vec<Axis> = layout
            .iter()
            .map(Edit::axis)
            .filter(|axis| (Axis::Tensor..=Axis::Expert).contains(axis))
            .collect();
        if ways.iter().any(|way| self.unsplit.contains(way)) {
            return None;
        }
        let place = place(evaluator, axes, layout, |_, _, run, _| run);
        if let ([way], None) = (&ways[..], place) {
            self.unsplit.push(*way);
        }
        place
    }
}

/// Takes the best of these, the best last.
fn best(all: &mut Vec<Ranked>) -> Vec<Ranked> {
    all.sort_by(|a, b| a.place.total_cmp(&b.place));
    let first = all.first().map_or(0.0, |first| first.place);
    let near = all.iter().filter(|row| row.place <= first * SLOWER);
    let near = near.count().clamp(1, MOST).min(all.len());
    let mut taken: Vec<Ranked> = all.drain(..near).collect();
    taken.reverse();
    taken
}

/// The layout's place, by the fastest of its runs that save most, each changed by `then`; those that do not fit come last.
/// `None` if it cannot run.
fn place(
    evaluator: &mut Evaluator,
    axes: &Axes,
    layout: &[Edit],
    then: impl Fn(&mut Evaluator, &Axes, Vec<Edit>, Edit) -> Vec<Edit>,
) -> Option<f64> {
    let edits = with_all(&axes.always, layout);
    let sizes = evaluator.space.micro_batches(&edits);
    let layers = axes.checkpointing.iter().flatten();
    let layers = layers
        .copied()
        .find(|edit| edit.id() == "checkpointing-layers");
    let saving = with_optional(&edits, layers);
    let loss = axes.losses.last().copied().flatten();
    // A copy that is divided keeps its loss, and not every network has layers that can be checkpointed.
    let mut ways = [with_optional(&saving, loss), saving, edits].into_iter();
    let size = Edit::MicroBatch(*sizes.last()?);
    let run = ways.find(|run| evaluator.quick(&with(run, size)).is_some())?;
    let run = then(evaluator, axes, run, size);
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
fn fitting(evaluator: &mut Evaluator, axes: &Axes, run: Vec<Edit>, size: Edit) -> Vec<Edit> {
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
    let ways = axes.optimizers.iter();
    let mut ways = ways.map(|optimizer| with_optional(&run, *optimizer));
    let found = ways.find(|run| {
        let quick = evaluator.quick(&with(run, size));
        quick.is_some_and(|quick| quick.may_fit())
    });
    found.unwrap_or(run)
}
