//! When the ranks of a pipeline compute: each pass as soon as its rank is free and what it needs has arrived.

use std::collections::VecDeque;

use super::order::Compute;
use super::{Action, Chunk, Pipeline};
use headroom_scenario::Schedule;

/// What a pass computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassKind {
    /// A forward pass.
    Forward,
    /// The full backward.
    Backward,
    /// The gradients of a stage's inputs alone.
    BackwardInput,
    /// Those of its weights, later.
    BackwardWeight,
}

/// A pass, and when it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedPass {
    /// What the pass computes.
    pub kind: PassKind,
    /// The stage and the micro-batch that it runs.
    pub chunk: Chunk,
    /// When it starts after the beginning of the step, in the unit of its `PassTimes`.
    pub start: f64,
    /// When it ends, in the same unit.
    pub end: f64,
}

/// How long the passes of one micro-batch take in one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassTimes {
    /// A forward pass, in a unit of the caller's choice.
    pub forward: f64,
    /// The full backward; a half of it for inputs or for weights alone.
    pub backward: f64,
}

impl PassTimes {
    fn of(self, kind: PassKind) -> f64 {
        match kind {
            PassKind::Forward => self.forward,
            PassKind::Backward => self.backward,
            PassKind::BackwardInput | PassKind::BackwardWeight => self.backward / 2.0,
        }
    }
}

impl Pipeline {
    /// The passes of each rank in their order. What is sent takes no time here.
    pub fn timetable(&self, times: PassTimes) -> Vec<Vec<TimedPass>> {
        let mut waiting: Vec<VecDeque<Vec<Compute>>> = (0..self.ranks)
            .map(|rank| Self { rank, ..*self }.passes().into())
            .collect();
        let mut ends = Ends::new(self);
        let mut timetable: Vec<Vec<TimedPass>> = vec![Vec::new(); self.ranks];
        loop {
            let mut progress = false;
            for (waiting, passed) in waiting.iter_mut().zip(&mut timetable) {
                while let Some(ready) = waiting.front().and_then(|next| ends.ready(next)) {
                    let mut clock = passed.last().map_or(0.0, |last| last.end).max(ready);
                    for pass in waiting.pop_front().unwrap_or_default() {
                        let (kind, chunk) = (kind_of(pass), pass.chunk());
                        let end = clock + times.of(kind);
                        ends.put(pass, end);
                        passed.push(TimedPass {
                            kind,
                            chunk,
                            start: clock,
                            end,
                        });
                        clock = end;
                    }
                    progress = true;
                }
            }
            if !progress {
                return timetable;
            }
        }
    }

    /// This rank's passes, those of one action together.
    fn passes(&self) -> Vec<Vec<Compute>> {
        let compute = |action: Action| match action {
            Action::Forward(chunk) => Some(vec![Compute::Forward(chunk)]),
            Action::Backward(chunk) => Some(vec![Compute::Backward(chunk)]),
            _ => None,
        };
        match self.schedule {
            Schedule::GPipe | Schedule::OneForwardOneBackward => {
                self.actions().into_iter().filter_map(compute).collect()
            }
            _ => self.computations(),
        }
    }
}

const fn kind_of(pass: Compute) -> PassKind {
    match pass {
        Compute::Forward(_) => PassKind::Forward,
        Compute::Backward(_) => PassKind::Backward,
        Compute::Input(_) => PassKind::BackwardInput,
        Compute::Weight(_) => PassKind::BackwardWeight,
    }
}

/// When each stage's passes have ended, as far as they have.
struct Ends {
    stages: usize,
    micro_batches: usize,
    forward: Vec<Option<f64>>,
    /// Of the gradients of inputs, which the stage before waits for.
    backward: Vec<Option<f64>>,
}

impl Ends {
    fn new(pipeline: &Pipeline) -> Self {
        let stages = pipeline.all_stages();
        let none = vec![None; stages.saturating_mul(pipeline.micro_batches)];
        Self {
            stages,
            micro_batches: pipeline.micro_batches,
            forward: none.clone(),
            backward: none,
        }
    }

    const fn place(&self, chunk: Chunk) -> usize {
        chunk.stage * self.micro_batches + chunk.micro_batch
    }

    fn put(&mut self, pass: Compute, end: f64) {
        let place = self.place(pass.chunk());
        let ends = match pass {
            Compute::Forward(_) => &mut self.forward,
            Compute::Backward(_) | Compute::Input(_) => &mut self.backward,
            Compute::Weight(_) => return,
        };
        if let Some(slot) = ends.get_mut(place) {
            *slot = Some(end);
        }
    }

    /// When all that these passes need from other stages has arrived; nothing while it has not.
    fn ready(&self, passes: &[Compute]) -> Option<f64> {
        let mut ready: f64 = 0.0;
        for pass in passes {
            let chunk = pass.chunk();
            let from = |ends: &[Option<f64>], stage: usize| {
                *ends.get(self.place(Chunk { stage, ..chunk }))?
            };
            let end = match pass {
                Compute::Forward(_) if chunk.stage > 0 => from(&self.forward, chunk.stage - 1)?,
                Compute::Backward(_) | Compute::Input(_) if chunk.stage + 1 < self.stages => {
                    from(&self.backward, chunk.stage + 1)?
                }
                _ => 0.0,
            };
            ready = ready.max(end);
        }
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: PassTimes = PassTimes {
        forward: 1.0,
        backward: 2.0,
    };

    fn pipeline(schedule: Schedule, [ranks, stages, micro_batches]: [usize; 3]) -> Pipeline {
        Pipeline {
            schedule,
            ranks,
            stages,
            rank: 0,
            micro_batches,
            frees_sent: false,
        }
    }

    /// The total time.
    fn length(timetable: &[Vec<TimedPass>]) -> f64 {
        let ends = timetable.iter().flatten().map(|pass| pass.end);
        ends.fold(0.0, f64::max)
    }

    #[test]
    fn idle_time_is_what_is_known_of_each_schedule() {
        #[track_caller]
        fn check(schedule: Schedule, layout: [usize; 3], expected: f64) {
            let [_, stages, micro_batches] = layout;
            let busy = 3.0 * (stages * micro_batches) as f64;
            let idle = length(&pipeline(schedule, layout).timetable(TIMES)) - busy;
            assert!(
                (idle - expected).abs() < 1e-9,
                "{schedule:?} {layout:?}: {idle}"
            );
        }
        // (p - 1) passes forward and back, whatever the micro-batches (arXiv 2104.04473, 2.2).
        check(Schedule::GPipe, [4, 1, 8], 9.0);
        check(Schedule::OneForwardOneBackward, [4, 1, 8], 9.0);
        check(Schedule::OneForwardOneBackward, [4, 1, 64], 9.0);
        // Of stages half as long each: half of it.
        check(Schedule::Interleaved, [4, 2, 8], 9.0);
        // Gradients of weights fill two thirds (arXiv 2401.10241, table 1: (p - 1)(F + I - W)).
        check(Schedule::ZeroBubble, [4, 1, 16], 3.0);
    }

    #[test]
    fn every_pass_runs_after_what_it_needs() {
        for &schedule in Schedule::ALL {
            for layout in [[2, 1, 4], [4, 1, 8], [2, 2, 4], [4, 2, 8], [3, 2, 6]] {
                let pipeline = pipeline(schedule, layout);
                if !pipeline.is_modelled() {
                    continue;
                }
                let timetable = pipeline.timetable(TIMES);
                let passes: Vec<TimedPass> = timetable.iter().flatten().copied().collect();
                let [ranks, stages, micro_batches] = layout;
                let forwards = passes.iter().filter(|pass| pass.kind == PassKind::Forward);
                assert_eq!(
                    forwards.count(),
                    ranks * stages * micro_batches,
                    "{pipeline:?}"
                );
                let end = |stage: usize, micro_batch: usize, is_forward: bool| {
                    let found = passes.iter().find(|pass| {
                        pass.chunk == Chunk { stage, micro_batch }
                            && pass.kind != PassKind::BackwardWeight
                            && (pass.kind == PassKind::Forward) == is_forward
                    });
                    found.unwrap().end
                };
                for pass in &passes {
                    let Chunk { stage, micro_batch } = pass.chunk;
                    let needed = match pass.kind {
                        PassKind::Forward if stage > 0 => end(stage - 1, micro_batch, true),
                        PassKind::Forward => 0.0,
                        PassKind::BackwardWeight => end(stage, micro_batch, false),
                        _ if stage + 1 < pipeline.all_stages() => {
                            end(stage + 1, micro_batch, false)
                        }
                        _ => end(stage, micro_batch, true),
                    };
                    assert!(pass.start >= needed, "{pipeline:?} {pass:?} {needed}");
                }
                for rank in &timetable {
                    assert!(rank.windows(2).all(|pair| pair[0].end <= pair[1].start));
                }
            }
        }
    }
}
