//! Explores a space: of each network the largest micro-batch that may fit, as far as it may be among the fastest.

use super::edit::Edit;
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

/// The axes on which every value is combined with every value of the others.
#[derive(Debug, Default)]
struct Axes {
    checkpointing: Vec<Option<Edit>>,
    losses: Vec<Option<Edit>>,
    optimizers: Vec<Option<Edit>>,
    in_backward: Option<Edit>,
}

/// Networks still to be explored: one layout and precision with all losses, checkpoints and optimizers, or with one loss.
#[derive(Debug)]
struct Task {
    prefix: Vec<Edit>,
    sizes: Vec<u64>,
    loss: Option<Edit>,
}

/// An exploration under way.
#[derive(Debug)]
pub struct Exploration {
    axes: Axes,
    tasks: Vec<Task>,
    /// Layouts that are ranked before they are explored.
    unranked: Vec<Vec<Edit>>,
    ranked: Vec<(f64, Vec<Edit>)>,
    always: Vec<Edit>,
    pub found: Vec<Candidate>,
    /// Of those that may fit.
    pub fastest: f64,
    /// The smallest of those that do not.
    pub smallest: Option<Candidate>,
}

/// More layouts than this are ranked first, and only the best of them are explored.
const FEW: usize = 64;
const BEST: usize = 10;

fn optional(edits: Vec<Edit>) -> Vec<Option<Edit>> {
    std::iter::once(None)
        .chain(edits.into_iter().map(Some))
        .collect()
}

impl Exploration {
    /// Of the runs that have all of these edits.
    pub fn new(evaluator: &mut Evaluator, always: &[Edit]) -> Self {
        let space = &evaluator.space;
        let mut new = Self {
            axes: Axes {
                checkpointing: optional(space.checkpointing()),
                losses: optional(space.losses()),
                optimizers: optional(space.optimizers()),
                in_backward: space.in_backward(),
            },
            tasks: Vec::new(),
            unranked: Vec::new(),
            ranked: Vec::new(),
            always: always.to_vec(),
            found: Vec::new(),
            fastest: f64::INFINITY,
            smallest: None,
        };
        let all = layouts(space);
        if all.len() > FEW {
            new.unranked = all;
            new.unranked.reverse();
        } else {
            for layout in all {
                new.add(evaluator, &layout);
            }
            new.tasks.reverse();
        }
        new
    }

    pub fn is_done(&self) -> bool {
        self.tasks.is_empty() && self.unranked.is_empty() && self.ranked.is_empty()
    }

    /// A layout with all precisions and kernels, as tasks.
    fn add(&mut self, evaluator: &mut Evaluator, layout: &[Edit]) {
        let layout = with_all(&self.always, layout);
        let sizes = evaluator.space.micro_batches(&layout);
        for precision in optional(evaluator.space.precisions()) {
            let prefix = precision.map_or(layout.clone(), |edit| with(&layout, edit));
            for loss in self.axes.losses.clone() {
                self.tasks.push(Task {
                    prefix: self.with_toggles(evaluator, &prefix, &sizes),
                    sizes: sizes.clone(),
                    loss,
                });
            }
            if layout == self.always {
                for compile in evaluator.space.compiled() {
                    self.tasks.push(Task {
                        prefix: with(&prefix, compile),
                        sizes: sizes.clone(),
                        loss: None,
                    });
                }
            }
        }
    }

    /// The prefix with each change that costs neither memory nor time there.
    fn with_toggles(
        &self,
        evaluator: &mut Evaluator,
        prefix: &[Edit],
        sizes: &[u64],
    ) -> Vec<Edit> {
        let Some(size) = sizes.last() else {
            return prefix.to_vec();
        };
        let at = |evaluator: &mut Evaluator, edits: &[Edit]| {
            evaluator.quick(&with(edits, Edit::MicroBatch(*size)))
        };
        let mut all = prefix.to_vec();
        for toggle in evaluator.space.toggles() {
            let added = with(&all, toggle);
            let (before, after) = (at(evaluator, &all), at(evaluator, &added));
            let better = match (before, after) {
                (Some(before), Some(after)) => {
                    let spare = |quick: Quick| quick.room.get() as f64 - quick.peak.get() as f64;
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

    /// Explores the next networks.
    pub fn step(&mut self, evaluator: &mut Evaluator) {
        if let Some(layout) = self.unranked.pop() {
            self.rank(evaluator, layout);
            if self.unranked.is_empty() {
                self.ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
                let most = self.ranked.len().saturating_sub(BEST);
                self.ranked.drain(..most);
            }
            return;
        }
        if let Some(task) = self.tasks.pop() {
            self.explore(evaluator, &task);
            return;
        }
        if let Some((_, layout)) = self.ranked.pop() {
            self.add(evaluator, &layout);
            self.tasks.reverse();
        }
    }

    /// The layout's place, by one run of it: the smallest micro-batch with checkpointed layers. What does not fit comes last.
    fn rank(&mut self, evaluator: &mut Evaluator, layout: Vec<Edit>) {
        let edits = with_all(&self.always, &layout);
        let Some(size) = evaluator.space.micro_batches(&edits).last().copied() else {
            return;
        };
        let layers = self.axes.checkpointing.iter().flatten();
        let whole = layers.copied().find(|edit| edit.id() == "checkpointing-layers");
        let smallest = whole.map_or(edits.clone(), |edit| with(&edits, edit));
        let Some(quick) = evaluator.quick(&with(&smallest, Edit::MicroBatch(size))) else {
            return;
        };
        let over = quick.peak.get() as f64 / quick.room.get().max(1) as f64;
        let place = if quick.may_fit() {
            quick.seconds
        } else {
            1e9 * over
        };
        self.ranked.push((place, layout));
    }

    fn explore(&mut self, evaluator: &mut Evaluator, task: &Task) {
        let prefix = task.loss.map_or(task.prefix.clone(), |loss| with(&task.prefix, loss));
        let pipelined = prefix.iter().any(|edit| matches!(edit, Edit::Pipeline { .. }));
        for checkpointing in self.axes.checkpointing.clone() {
            let network = checkpointing.map_or(prefix.clone(), |edit| with(&prefix, edit));
            for optimizer in self.axes.optimizers.clone() {
                let run = optimizer.map_or(network.clone(), |edit| with(&network, edit));
                if pipelined {
                    self.upwards(evaluator, &run, &task.sizes);
                } else {
                    self.largest(evaluator, &run, &task.sizes);
                }
            }
        }
    }

    /// A pipeline is idle longer with few large micro-batches, so each size counts.
    fn upwards(&mut self, evaluator: &mut Evaluator, run: &[Edit], sizes: &[u64]) {
        for size in sizes.iter().rev() {
            let edits = with(run, Edit::MicroBatch(*size));
            let Some(quick) = evaluator.quick(&edits) else {
                continue;
            };
            let fits = quick.may_fit();
            self.offer(edits, quick);
            if !fits {
                return;
            }
        }
    }

    /// The largest micro-batch that may fit, by bisection: smaller ones need less, and are no faster.
    fn largest(&mut self, evaluator: &mut Evaluator, run: &[Edit], sizes: &[u64]) {
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
            if quick.seconds > ROOM * self.fastest {
                return;
            }
            let fits = quick.may_fit();
            let freed = quick.without_gradients <= quick.room;
            self.offer(edits.clone(), quick);
            if fits {
                return;
            }
            if let Some(in_backward) = self.axes.in_backward.filter(|_| freed) {
                let edits = with(&edits, in_backward);
                if let Some(quick) = evaluator.quick(&edits) {
                    self.offer(edits, quick);
                }
            }
        }
        if sizes.len() < 2 {
            return;
        }
        let Some((edits, quick)) = at(evaluator, *last) else {
            return;
        };
        let fits = quick.may_fit();
        self.offer(edits, quick);
        if !fits {
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
                    self.offer(edits, quick);
                    high = middle;
                }
                _ => low = middle + 1,
            }
        }
    }

    fn offer(&mut self, edits: Vec<Edit>, quick: Quick) {
        let candidate = Candidate { edits, quick };
        if quick.may_fit() {
            self.fastest = self.fastest.min(quick.seconds);
            self.found.push(candidate);
            return;
        }
        let least = self.smallest.as_ref();
        let over = |quick: Quick| quick.peak.get() as f64 / quick.room.get().max(1) as f64;
        if least.is_none_or(|least| over(quick) < over(least.quick)) {
            self.smallest = Some(candidate);
        }
    }
}
