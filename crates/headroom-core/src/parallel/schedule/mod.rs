//! The order of a pipeline rank's passes, and when it sends, receives and frees (torch/distributed/pipelining/schedules.py).

mod order;
mod runtime;
mod single;
mod timetable;
mod v_shaped;

pub use timetable::{PassKind, PassTimes, TimedPass};

use headroom_scenario::Schedule;

/// A stage's pass of one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chunk {
    /// The stage, of those of all ranks.
    pub stage: usize,
    /// The micro-batch of the step, counted from 0.
    pub micro_batch: usize,
}

/// What a rank does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Forward(Chunk),
    Backward(Chunk),
    /// The gradients of a stage's inputs alone.
    BackwardInput(Chunk),
    /// Those of its weights, later.
    BackwardWeight(Chunk),
    /// A stage's sharded parameters are gathered.
    Unshard(usize),
    /// They are resharded.
    Reshard(usize),
    /// A stage's gradients are complete: they are reduced.
    ReduceGradients(usize),
    /// Memory for what the stage before sends.
    ReceiveInput(Chunk),
    /// Memory for the gradient that the stage after sends.
    ReceiveGradient(Chunk),
    /// The output has been sent.
    ReleaseOutput(Chunk),
    /// The gradient of the input has been sent.
    ReleaseInputGradient(Chunk),
    /// What is allocated from here to `HoldInFlight` is what each micro-batch adds that is not run.
    Measure,
    /// The memory of this many micro-batches that are not run is held from here on.
    HoldInFlight(usize),
    /// The memory of `HoldInFlight` is freed.
    ReleaseHeld,
}

/// A rank's place in a pipeline of `ranks`, of which each has `stages` stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The order in which ranks run their passes.
    pub schedule: Schedule,
    /// The number of pipeline ranks.
    pub ranks: usize,
    /// The number of stages on each rank; more than 1 with virtual stages.
    pub stages: usize,
    /// This rank's place, counted from 0.
    pub rank: usize,
    /// The number of micro-batches in a step.
    pub micro_batches: usize,
    /// Whether an output goes once it is sent (`deallocate_pipeline_outputs`, which Megatron's training script turns on).
    pub frees_sent: bool,
}

impl Pipeline {
    /// Whether the schedule is modelled: as many stages a rank as it takes, and not so many passes that to order them all would
    /// take long.
    pub const fn is_modelled(&self) -> bool {
        const MOST_PASSES: usize = 1 << 14;
        let passes = self.all_stages().saturating_mul(self.micro_batches);
        match self.schedule {
            Schedule::GPipe | Schedule::OneForwardOneBackward => self.stages == 1,
            Schedule::Interleaved | Schedule::LoopedBfs | Schedule::ZeroBubble => {
                passes <= MOST_PASSES
            }
            Schedule::ZeroBubbleV => self.stages == 2 && passes <= MOST_PASSES,
            Schedule::DualPipeV => {
                self.stages == 2 && passes <= MOST_PASSES && self.micro_batches >= self.all_stages()
            }
        }
    }

    /// Whether a backward is taken apart: inputs first, weights later.
    pub const fn splits_backward(&self) -> bool {
        matches!(
            self.schedule,
            Schedule::ZeroBubble | Schedule::ZeroBubbleV | Schedule::DualPipeV
        )
    }

    /// The number of stages of all ranks.
    pub const fn all_stages(&self) -> usize {
        self.ranks.saturating_mul(self.stages)
    }

    /// The stages that this rank has: every so many, or one from the start and one from the end of the model
    /// (`generate_stage_to_rank_mapping`).
    pub fn own_stages(&self) -> impl Iterator<Item = usize> {
        let this = *self;
        (0..self.all_stages()).filter(move |stage| this.rank_of(*stage) == this.rank)
    }

    /// Whether a stage is this rank's: nothing is sent to it from here.
    pub const fn is_own(&self, stage: usize) -> bool {
        stage < self.all_stages() && self.rank_of(stage) == self.rank
    }

    const fn rank_of(&self, stage: usize) -> usize {
        let ranks = if self.ranks == 0 { 1 } else { self.ranks };
        let (round, place) = (stage / ranks, stage % ranks);
        let returns = matches!(self.schedule, Schedule::ZeroBubbleV | Schedule::DualPipeV);
        if returns && round % 2 == 1 {
            ranks - 1 - place
        } else {
            place
        }
    }

    /// What this rank does in one step.
    pub(crate) fn actions(&self) -> Vec<Action> {
        match self.schedule {
            Schedule::GPipe => self.gpipe(),
            Schedule::OneForwardOneBackward => self.one_forward_one_backward(),
            _ => self.lowered(),
        }
    }

    /// The same with the fewest micro-batches that show every memory state: the others do what their neighbours do.
    /// With `memory_alone`, when no times are needed, passes that never reach the peak are left out too.
    pub(crate) fn peak_actions(&self, memory_alone: bool) -> Vec<Action> {
        match self.schedule {
            Schedule::OneForwardOneBackward => self.peak_one_forward_one_backward(memory_alone),
            _ => self.actions(),
        }
    }

    const fn is_last(&self, chunk: Chunk) -> bool {
        chunk.stage + 1 == self.all_stages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passes of a rank in PyTorch's own words: stage, kind and micro-batch.
    fn described(pipeline: Pipeline) -> String {
        let passes = pipeline
            .actions()
            .into_iter()
            .filter_map(|action| match action {
                Action::Forward(chunk) => Some(format!("{}F{}", chunk.stage, chunk.micro_batch)),
                Action::Backward(chunk) => Some(format!("{}B{}", chunk.stage, chunk.micro_batch)),
                Action::BackwardInput(chunk) => {
                    Some(format!("{}I{}", chunk.stage, chunk.micro_batch))
                }
                Action::BackwardWeight(chunk) => {
                    Some(format!("{}W{}", chunk.stage, chunk.micro_batch))
                }
                _ => None,
            });
        passes.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(schedule: Schedule, [ranks, stages, rank, micro_batches]: [usize; 4], expected: &str) {
        let pipeline = Pipeline {
            schedule,
            ranks,
            stages,
            rank,
            micro_batches,
            frees_sent: false,
        };
        assert_eq!(described(pipeline), expected);
    }

    #[test]
    fn passes_come_in_pytorchs_order() {
        use Schedule::{
            DualPipeV, GPipe, Interleaved, LoopedBfs, OneForwardOneBackward, ZeroBubble,
            ZeroBubbleV,
        };
        check(
            OneForwardOneBackward,
            [2, 1, 0, 3],
            "0F0 0F1 0B0 0F2 0B1 0B2",
        );
        check(
            OneForwardOneBackward,
            [2, 1, 1, 3],
            "1F0 1B0 1F1 1B1 1F2 1B2",
        );
        check(GPipe, [2, 1, 0, 2], "0F0 0F1 0B0 0B1");
        check(LoopedBfs, [2, 2, 1, 2], "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0");
        // Read from `pipeline_order` of torch 2.15.
        check(
            Interleaved,
            [4, 2, 3, 8],
            "3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 7F4 7B4 7F5 7B5 7F6 7B6 7F7 7B7 \
             3B4 3B5 3B6 3B7",
        );
        check(
            ZeroBubble,
            [4, 2, 3, 8],
            "3F0 3F1 3F2 3F3 7F0 7I0 7F1 7I1 7F2 7I2 7F3 7I3 7W0 3F4 3I0 7W1 3F5 3I1 7W2 3F6 3I2 7W3 3F7 3I3 3W0 7F4 7I4 3W1 \
             7F5 7I5 3W2 7F6 7I6 3W3 7F7 7I7 7W4 3I4 7W5 3I5 7W6 3I6 7W7 3I7 3W4 3W5 3W6 3W7",
        );
        check(
            ZeroBubble,
            [4, 1, 0, 8],
            "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7",
        );
        check(
            ZeroBubbleV,
            [4, 2, 1, 8],
            "1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 6I2 6W2 1F6 1I0 1W0 6F4 6I3 6W3 1F7 1I1 1W1 6F5 6I4 6W4 \
             1I2 1W2 6F6 6I5 6W5 1I3 1W3 6F7 6I6 6W6 1I4 6I7 1I5 1W4 1I6 1W5 1I7 1W6 6W7 1W7",
        );
        check(
            ZeroBubbleV,
            [4, 2, 0, 8],
            "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 7I3 7W3 0F7 0I0 0W0 7F4 7I4 7W4 0I1 0W1 7F5 \
             7I5 7W5 0I2 0W2 7F6 7I6 7W6 0I3 0W3 7F7 7I7 7W7 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7",
        );
        check(
            DualPipeV,
            [4, 2, 1, 8],
            "1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 1F6 6B2 6F4 1B0 1F7 6B3 6F5 1B1 6B4 6F6 1B2 6B5 6F7 1B3 \
             6B6 1B4 6I7 1I5 6W7 1I6 1W5 1I7 1W6 1W7",
        );
        check(
            DualPipeV,
            [3, 2, 2, 7],
            "2F0 3F0 2F1 3F1 2F2 3F2 2F3 3B0 3F3 2B0 2F4 3B1 3F4 2B1 2F5 3B2 3F5 2B2 2F6 3B3 3F6 2B3 3B4 2B4 3B5 2I5 3I6 2I6 \
             2W5 3W6 2W6",
        );
    }

    #[test]
    fn megatron_frees_an_output_once_it_is_sent() {
        #[track_caller]
        fn check(frees_sent: bool, expected: Action) {
            let pipeline = Pipeline {
                schedule: Schedule::Interleaved,
                ranks: 4,
                stages: 2,
                rank: 1,
                micro_batches: 8,
                frees_sent,
            };
            let actions = pipeline.actions();
            let mut outputs = actions.iter().enumerate();
            let released = outputs.find(|(_, action)| matches!(action, Action::ReleaseOutput(_)));
            let before = released.and_then(|(at, _)| actions.get(at.checked_sub(1)?));
            assert_eq!(before, Some(&expected));
        }
        let first = |stage| Chunk {
            stage,
            micro_batch: 0,
        };
        check(true, Action::Forward(first(1)));
        check(false, Action::Backward(first(5)));
    }

    #[test]
    fn a_schedule_conserves_work() {
        for &schedule in Schedule::ALL {
            for (ranks, stages) in [(2, 1), (4, 1), (2, 2), (4, 2), (4, 3)] {
                for rank in 0..ranks {
                    let pipeline = Pipeline {
                        schedule,
                        ranks,
                        stages,
                        rank,
                        micro_batches: 8,
                        frees_sent: rank % 2 == 1,
                    };
                    if !pipeline.is_modelled() {
                        continue;
                    }
                    let actions = pipeline.actions();
                    for stage in pipeline.own_stages() {
                        for micro_batch in 0..8 {
                            let chunk = Chunk { stage, micro_batch };
                            let at = |wanted: Action| actions.iter().position(|a| *a == wanted);
                            let forward = at(Action::Forward(chunk));
                            let whole = at(Action::Backward(chunk));
                            let input = at(Action::BackwardInput(chunk));
                            let weight = at(Action::BackwardWeight(chunk));
                            assert!(forward.is_some());
                            assert!(whole.is_some() != input.is_some(), "{pipeline:?} {chunk:?}");
                            assert!(input.is_some() == weight.is_some());
                            assert!(forward < whole.or(input) && input <= weight);
                        }
                    }
                    let passes = actions.iter().filter(|a| {
                        matches!(
                            a,
                            Action::Forward(_) | Action::Backward(_) | Action::BackwardInput(_)
                        )
                    });
                    assert_eq!(passes.count(), 2 * 8 * stages);
                }
            }
        }
    }
}
