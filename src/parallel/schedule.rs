//! The order of a pipeline rank's passes, and when it sends, receives and lets go (torch/distributed/pipelining/schedules.py).

use crate::scenario::Schedule;

/// A stage's pass of one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chunk {
    /// The stage, of those of all ranks.
    pub stage: usize,
    pub micro_batch: usize,
}

/// What a rank does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Forward(Chunk),
    Backward(Chunk),
    /// Memory for what the stage before sends.
    ReceiveInput(Chunk),
    /// Memory for the gradient that the stage after sends.
    ReceiveGradient(Chunk),
    /// The output has been sent.
    ReleaseOutput(Chunk),
    /// The gradient of the input has been sent.
    ReleaseInputGradient(Chunk),
}

/// A rank's place in a pipeline of `ranks`, of which each has `stages` stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    pub schedule: Schedule,
    pub ranks: usize,
    pub stages: usize,
    pub rank: usize,
    pub micro_batches: usize,
}

impl Pipeline {
    /// Whether the schedule is modelled: those that take a backward apart into inputs and weights are not, nor those of so many
    /// passes that to order them all would take long.
    pub const fn is_modelled(&self) -> bool {
        const MOST_PASSES: usize = 1 << 14;
        let passes = self.all_stages().saturating_mul(self.micro_batches);
        match self.schedule {
            Schedule::GPipe | Schedule::OneForwardOneBackward => self.stages == 1,
            Schedule::Interleaved | Schedule::LoopedBfs => passes <= MOST_PASSES,
            Schedule::ZeroBubble | Schedule::ZeroBubbleV | Schedule::DualPipeV => false,
        }
    }

    /// The number of stages of all ranks.
    pub const fn all_stages(&self) -> usize {
        self.ranks.saturating_mul(self.stages)
    }

    /// The stages that this rank has.
    pub fn own_stages(&self) -> impl Iterator<Item = usize> {
        let (rank, ranks) = (self.rank, self.ranks);
        (0..self.stages).map(move |i| rank + i * ranks)
    }

    /// What this rank does in one step.
    pub fn actions(&self) -> Vec<Action> {
        match self.schedule {
            Schedule::GPipe => self.gpipe(),
            Schedule::OneForwardOneBackward => self.one_forward_one_backward(),
            _ => self.looped(),
        }
    }

    const fn chunk(&self, micro_batch: usize) -> Chunk {
        Chunk {
            stage: self.rank,
            micro_batch,
        }
    }

    fn is_last(&self, chunk: Chunk) -> bool {
        chunk.stage + 1 == self.all_stages()
    }

    /// `ScheduleGPipe`: sends are waited for once all forwards have run; the gradient of an input goes as the next
    /// backward begins.
    fn gpipe(&self) -> Vec<Action> {
        let mut all = Vec::new();
        let chunks = || (0..self.micro_batches).map(|i| self.chunk(i));
        for chunk in chunks() {
            if chunk.stage > 0 {
                all.push(Action::ReceiveInput(chunk));
            }
            all.push(Action::Forward(chunk));
        }
        if self.rank + 1 < self.ranks {
            all.extend(chunks().map(Action::ReleaseOutput));
        }
        for chunk in chunks() {
            if !self.is_last(chunk) {
                all.push(Action::ReceiveGradient(chunk));
            }
            if chunk.stage > 0 && chunk.micro_batch > 0 {
                all.push(Action::ReleaseInputGradient(
                    self.chunk(chunk.micro_batch - 1),
                ));
            }
            all.push(Action::Backward(chunk));
        }
        all
    }

    /// `Schedule1F1B`: an output goes after the next forward, or as the next backward begins; the gradient of an input after
    /// the next backward.
    fn one_forward_one_backward(&self) -> Vec<Action> {
        let mut all = Vec::new();
        let warm_up = self
            .micro_batches
            .min(self.ranks - self.rank.min(self.ranks));
        let (mut forward, mut backward) = (0, 0);
        let first = self.rank == 0;
        let last = self.rank + 1 == self.ranks;
        let push_forward = |all: &mut Vec<Action>, i: usize| {
            if !first {
                all.push(Action::ReceiveInput(self.chunk(i)));
            }
            all.push(Action::Forward(self.chunk(i)));
        };
        let push_backward = |all: &mut Vec<Action>, i: usize| {
            all.push(Action::Backward(self.chunk(i)));
            if !first && i > 0 {
                all.push(Action::ReleaseInputGradient(self.chunk(i - 1)));
            }
        };
        while forward < warm_up {
            push_forward(&mut all, forward);
            if !last && forward > 0 {
                all.push(Action::ReleaseOutput(self.chunk(forward - 1)));
            }
            forward += 1;
        }
        while backward < self.micro_batches {
            if !last {
                all.push(Action::ReceiveGradient(self.chunk(backward)));
                if backward + warm_up <= self.micro_batches && forward > 0 {
                    all.push(Action::ReleaseOutput(self.chunk(forward - 1)));
                }
            }
            push_backward(&mut all, backward);
            backward += 1;
            if forward < self.micro_batches {
                push_forward(&mut all, forward);
                forward += 1;
            }
        }
        all
    }

    /// `_PipelineScheduleRuntime`: receives stand where the sender's rank has sent (`_add_send_recv`); an output is let go after
    /// its own backward, the gradient of an input with the step (`_add_wait_send`).
    fn looped(&self) -> Vec<Action> {
        let mut waiting: Vec<std::collections::VecDeque<Compute>> = (0..self.ranks)
            .map(|rank| Self { rank, ..*self }.computations().into())
            .collect();
        let mut done: Vec<Vec<Compute>> = vec![Vec::new(); self.ranks];
        let mut received: Vec<Vec<Compute>> = vec![Vec::new(); self.ranks];
        let mut own = Vec::new();
        let rank_of = |stage: usize| stage % self.ranks.max(1);
        loop {
            let mut progress = false;
            for rank in 0..self.ranks {
                let Some(next) = waiting[rank].front().copied() else {
                    continue;
                };
                let ready = match next {
                    Compute::Forward(chunk) => chunk.stage == 0 || received[rank].contains(&next),
                    Compute::Backward(chunk) => {
                        self.is_last(chunk) || received[rank].contains(&next)
                    }
                };
                if !ready {
                    continue;
                }
                waiting[rank].pop_front();
                done[rank].push(next);
                progress = true;
                if rank == self.rank {
                    own.push(match next {
                        Compute::Forward(chunk) => Action::Forward(chunk),
                        Compute::Backward(chunk) => Action::Backward(chunk),
                    });
                    if let Compute::Backward(chunk) = next
                        && !self.is_last(chunk)
                    {
                        own.push(Action::ReleaseOutput(chunk));
                    }
                }
                let sent = match next {
                    Compute::Forward(chunk) if !self.is_last(chunk) => {
                        Some(Compute::Forward(Chunk {
                            stage: chunk.stage + 1,
                            ..chunk
                        }))
                    }
                    Compute::Backward(chunk) if chunk.stage > 0 => Some(Compute::Backward(Chunk {
                        stage: chunk.stage - 1,
                        ..chunk
                    })),
                    _ => None,
                };
                let Some(sent) = sent else { continue };
                let (to, action) = match sent {
                    Compute::Forward(chunk) => (rank_of(chunk.stage), Action::ReceiveInput(chunk)),
                    Compute::Backward(chunk) => {
                        (rank_of(chunk.stage), Action::ReceiveGradient(chunk))
                    }
                };
                received[to].push(sent);
                if to == self.rank {
                    own.push(action);
                }
            }
            if !progress {
                return own;
            }
        }
    }

    /// A rank's passes without what is between them.
    fn computations(&self) -> Vec<Compute> {
        if self.schedule == Schedule::LoopedBfs {
            return self.breadth_first();
        }
        let rounds = (self.micro_batches / self.ranks.max(1)).max(1);
        let per_round = (self.micro_batches / rounds).max(1);
        let total = self.stages * self.micro_batches;
        let warm_up = (self.stages - 1) * per_round + 2 * (self.ranks - 1 - self.rank);
        let warm_up = warm_up.min(total);
        let mut forwards = vec![0; self.stages];
        let mut backwards = vec![0; self.stages];
        let next = |counts: &mut Vec<usize>, local: usize| {
            let micro_batch = counts[local];
            counts[local] += 1;
            Chunk {
                stage: local * self.ranks + self.rank,
                micro_batch,
            }
        };
        let mut all = Vec::new();
        for op in 0..total + warm_up {
            if op < total {
                let local = op / per_round % self.stages;
                all.push(Compute::Forward(next(&mut forwards, local)));
            }
            if op >= warm_up {
                let local = self.stages - 1 - (op - warm_up) / per_round % self.stages;
                all.push(Compute::Backward(next(&mut backwards, local)));
            }
        }
        all
    }

    /// `ScheduleLoopedBFS`.
    fn breadth_first(&self) -> Vec<Compute> {
        let chunk = |stage, micro_batch| Chunk { stage, micro_batch };
        let own: Vec<usize> = self.own_stages().collect();
        let forwards = own.iter().flat_map(|&stage| {
            (0..self.micro_batches).map(move |i| Compute::Forward(chunk(stage, i)))
        });
        let backwards = own.iter().rev().flat_map(|&stage| {
            let reversed = (0..self.micro_batches).rev();
            reversed.map(move |i| Compute::Backward(chunk(stage, i)))
        });
        forwards.chain(backwards).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compute {
    Forward(Chunk),
    Backward(Chunk),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passes of a rank in PyTorch's own words: stage, kind and micro-batch.
    fn said(pipeline: Pipeline) -> String {
        let passes = pipeline
            .actions()
            .into_iter()
            .filter_map(|action| match action {
                Action::Forward(chunk) => Some(format!("{}F{}", chunk.stage, chunk.micro_batch)),
                Action::Backward(chunk) => Some(format!("{}B{}", chunk.stage, chunk.micro_batch)),
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
        };
        assert_eq!(said(pipeline), expected);
    }

    #[test]
    fn passes_come_in_pytorchs_order() {
        use Schedule::{GPipe, Interleaved, LoopedBfs, OneForwardOneBackward};
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
    }

    #[test]
    fn a_schedule_conserves_work() {
        for &schedule in Schedule::ALL {
            for (ranks, stages) in [(2, 1), (4, 1), (2, 2), (4, 3)] {
                for rank in 0..ranks {
                    let pipeline = Pipeline {
                        schedule,
                        ranks,
                        stages,
                        rank,
                        micro_batches: 8,
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
                            assert!(forward.is_some());
                            assert!(forward < at(Action::Backward(chunk)));
                        }
                    }
                    let passes = actions
                        .iter()
                        .filter(|a| matches!(a, Action::Forward(_) | Action::Backward(_)));
                    assert_eq!(passes.count(), 2 * 8 * stages);
                }
            }
        }
    }
}
