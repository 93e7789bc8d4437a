//! Schedules whose ranks have one stage from the start of the model and one from its end.

use std::collections::VecDeque;

use super::order::Compute;
use super::{Chunk, Pipeline};

/// A rank's passes as they are put down: each kind takes a stage's micro-batches in turn.
#[derive(Default)]
struct Passes {
    all: Vec<Vec<Compute>>,
    forwards: [usize; 2],
    inputs: [usize; 2],
    weights: [usize; 2],
    /// Backwards whose weights are deferred.
    waiting: VecDeque<Chunk>,
}

fn turn(counts: &mut [usize; 2], stages: [usize; 2], of: usize) -> Chunk {
    let micro_batch = counts[of];
    counts[of] += 1;
    Chunk {
        stage: stages[of],
        micro_batch,
    }
}

impl Pipeline {
    const fn both_stages(&self) -> [usize; 2] {
        [self.rank, self.all_stages() - 1 - self.rank]
    }

    /// `ScheduleZBVZeroBubble`.
    pub(super) fn zero_bubble_v(&self) -> Vec<Compute> {
        let stages = self.both_stages();
        let micro_batches = self.micro_batches.max((2 * self.ranks).saturating_sub(1));
        let (ranks, rank) = (self.ranks, self.rank);
        let mut all = Vec::new();
        let mut passes = Passes::default();
        let Passes {
            forwards,
            inputs,
            weights,
            ..
        } = &mut passes;
        let forward = |all: &mut Vec<Compute>, counts: &mut [usize; 2], of| {
            all.push(Compute::Forward(turn(counts, stages, of)));
        };
        let input = |all: &mut Vec<Compute>, counts: &mut [usize; 2], of| {
            all.push(Compute::Input(turn(counts, stages, of)));
        };
        let weight = |all: &mut Vec<Compute>, counts: &mut [usize; 2], of| {
            all.push(Compute::Weight(turn(counts, stages, of)));
        };
        for _ in 0..2 * (ranks - rank) - 1 {
            forward(&mut all, forwards, 0);
        }
        for _ in 0..rank {
            forward(&mut all, forwards, 1);
            forward(&mut all, forwards, 0);
        }
        for _ in 0..ranks - rank {
            forward(&mut all, forwards, 1);
            input(&mut all, inputs, 1);
            weight(&mut all, weights, 1);
        }
        while forwards[1] < forwards[0] || forwards[0] < micro_batches {
            if forwards[0] < micro_batches {
                forward(&mut all, forwards, 0);
            }
            input(&mut all, inputs, 0);
            weight(&mut all, weights, 0);
            forward(&mut all, forwards, 1);
            input(&mut all, inputs, 1);
            weight(&mut all, weights, 1);
        }
        for _ in 0..rank {
            input(&mut all, inputs, 0);
            input(&mut all, inputs, 1);
        }
        for _ in 0..ranks - rank {
            input(&mut all, inputs, 0);
            weight(&mut all, weights, 0);
        }
        for of in [1, 0] {
            while weights[of] < inputs[of] {
                weight(&mut all, weights, of);
            }
        }
        all.retain(|pass| pass.chunk().micro_batch < self.micro_batches);
        all
    }

    /// `ScheduleDualPipeV`.
    pub(super) fn dual_pipe_v(&self) -> Vec<Vec<Compute>> {
        let stages = self.both_stages();
        let (ranks, rank) = (self.ranks, self.rank);
        let mut passes = Passes::default();
        for _ in 0..2 * (ranks - rank - 1) {
            passes.forward(stages, 0);
        }
        for _ in 0..=rank {
            passes.forward(stages, 0);
            passes.forward(stages, 1);
        }
        for _ in 0..ranks - rank - 1 {
            passes.backward(stages, 1, true);
            passes.weight();
            passes.forward(stages, 1);
        }
        let steady = (self.micro_batches + rank + 1).saturating_sub(2 * ranks);
        for i in 0..steady {
            if i == 0 && rank + 1 == ranks {
                passes.forward(stages, 0);
                passes.backward(stages, 1, false);
            } else {
                passes.overlapped(stages, [0, 1]);
            }
            passes.overlapped(stages, [1, 0]);
        }
        for _ in 0..ranks - rank - 1 {
            passes.backward(stages, 1, false);
            passes.overlapped(stages, [1, 0]);
        }
        let half = rank.div_ceil(2);
        let mut splits = false;
        for i in 0..=rank {
            splits |= i == half && rank % 2 == 1;
            passes.backward(stages, 1, splits);
            splits |= i == half && rank.is_multiple_of(2);
            passes.backward(stages, 0, splits);
        }
        for _ in 0..ranks - rank - 1 {
            passes.weight();
            passes.backward(stages, 0, splits);
        }
        for _ in 0..=rank {
            passes.weight();
        }
        passes.all
    }
}

impl Passes {
    fn forward(&mut self, stages: [usize; 2], of: usize) {
        let chunk = turn(&mut self.forwards, stages, of);
        self.all.push(vec![Compute::Forward(chunk)]);
    }

    /// The full backward, or that of inputs, whose weights wait.
    fn backward(&mut self, stages: [usize; 2], of: usize, splits: bool) {
        let chunk = turn(&mut self.inputs, stages, of);
        if splits {
            self.waiting.push_back(chunk);
            self.all.push(vec![Compute::Input(chunk)]);
        } else {
            self.all.push(vec![Compute::Backward(chunk)]);
        }
    }

    /// `OVERLAP_F_B`: a forward and a backward that are one action.
    fn overlapped(&mut self, stages: [usize; 2], [forward, backward]: [usize; 2]) {
        let forward = turn(&mut self.forwards, stages, forward);
        let backward = turn(&mut self.inputs, stages, backward);
        let both = vec![Compute::Forward(forward), Compute::Backward(backward)];
        self.all.push(both);
    }

    /// The weights that have waited longest, if any do.
    fn weight(&mut self) {
        if let Some(chunk) = self.waiting.pop_front() {
            self.all.push(vec![Compute::Weight(chunk)]);
        }
    }
}
