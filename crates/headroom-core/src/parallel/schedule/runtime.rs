//! Communication between the passes of ranks with several stages (`_PipelineScheduleRuntime._prepare_schedule_with_comms`).

use std::collections::VecDeque;

use super::order::Compute;
use super::{Action, Chunk, Pipeline};

/// A step of a rank's program before sends and receives are in it.
#[derive(Clone, Debug)]
enum ProgramStep {
    Passes(Vec<Compute>),
    Other(Action),
    /// `WAIT_REDUCE_GRAD`, which waits for what here has happened.
    Wait,
}

impl Pipeline {
    /// What this rank does: receives follow the sends of the other rank (`_add_send_recv`); an output is freed after its
    /// own backward, the gradient of an input with the step (`_add_wait_send`).
    pub(super) fn lowered(&self) -> Vec<Action> {
        let mut waiting: Vec<VecDeque<ProgramStep>> = (0..self.ranks)
            .map(|rank| Self { rank, ..*self }.program())
            .collect();
        // What each rank has received or computed, as the pass that it is the input of.
        let mut ready: Vec<Vec<Compute>> = vec![Vec::new(); self.ranks];
        let mut own = Vec::new();
        loop {
            let mut progress = false;
            for rank in 0..self.ranks {
                let Some(next) = waiting[rank].front() else {
                    continue;
                };
                if let ProgramStep::Passes(passes) = next
                    && !passes.iter().all(|pass| self.is_ready(*pass, &ready[rank]))
                {
                    continue;
                }
                let Some(next) = waiting[rank].pop_front() else {
                    continue;
                };
                progress = true;
                match next {
                    ProgramStep::Wait => {}
                    ProgramStep::Other(action) => {
                        if rank == self.rank {
                            own.push(action);
                        }
                    }
                    ProgramStep::Passes(passes) => {
                        for pass in passes {
                            self.run(rank, pass, &mut ready, &mut own);
                        }
                    }
                }
            }
            if !progress {
                return own;
            }
        }
    }

    fn is_ready(&self, pass: Compute, ready: &[Compute]) -> bool {
        match pass {
            Compute::Forward(chunk) => chunk.stage == 0 || ready.contains(&pass),
            Compute::Backward(chunk) | Compute::Input(chunk) => {
                self.is_last(chunk) || ready.contains(&Compute::Backward(chunk))
            }
            Compute::Weight(_) => true,
        }
    }

    /// Puts a pass down, with what follows it here and on the rank it sends to.
    fn run(&self, rank: usize, pass: Compute, ready: &mut [Vec<Compute>], own: &mut Vec<Action>) {
        let chunk = pass.chunk();
        if rank == self.rank {
            own.push(match pass {
                Compute::Forward(chunk) => Action::Forward(chunk),
                Compute::Backward(chunk) => Action::Backward(chunk),
                Compute::Input(chunk) => Action::BackwardInput(chunk),
                Compute::Weight(chunk) => Action::BackwardWeight(chunk),
            });
            // `deallocate_output_tensor` in megatron/core/pipeline_parallel/schedules.py, or with its own backward.
            let released = match pass {
                Compute::Forward(_) => self.frees_sent,
                Compute::Backward(_) | Compute::Input(_) => !self.frees_sent,
                Compute::Weight(_) => false,
            };
            if released && !self.is_last(chunk) {
                own.push(Action::ReleaseOutput(chunk));
            }
        }
        let (receiver, action) = match pass {
            Compute::Forward(_) if !self.is_last(chunk) => {
                let next = Chunk {
                    stage: chunk.stage + 1,
                    ..chunk
                };
                (Compute::Forward(next), Action::ReceiveInput(next))
            }
            Compute::Backward(_) | Compute::Input(_) if chunk.stage > 0 => {
                let before = Chunk {
                    stage: chunk.stage - 1,
                    ..chunk
                };
                (Compute::Backward(before), Action::ReceiveGradient(before))
            }
            _ => return,
        };
        let to = self.rank_of(receiver.chunk().stage);
        if let Some(ready) = ready.get_mut(to) {
            ready.push(receiver);
        }
        if to == self.rank && to != rank {
            own.push(action);
        }
    }

    /// A rank's passes with what sharded parameters need between them (`_add_unshard_reshard`, `_add_reduce_grad`).
    fn program(&self) -> VecDeque<ProgramStep> {
        /// Stages that may be unsharded at once (`max_active_stages`).
        const MOST_ACTIVE: usize = 3;
        let passes = self.computations();
        let mut active: Vec<usize> = Vec::new();
        let mut backwards = vec![0; self.all_stages()];
        let mut program = VecDeque::new();
        for (at, these) in passes.iter().enumerate() {
            let mut coming: Vec<usize> = Vec::new();
            for next in passes.iter().skip(at) {
                for stage in next.iter().map(|pass| pass.chunk().stage) {
                    if !coming.contains(&stage) {
                        coming.push(stage);
                    }
                }
                if coming.len() >= MOST_ACTIVE.min(self.stages) {
                    break;
                }
            }
            active.retain(|stage| {
                let stays = coming.contains(stage);
                if !stays {
                    program.push_back(ProgramStep::Other(Action::Reshard(*stage)));
                }
                stays
            });
            for stage in coming {
                if !active.contains(&stage) {
                    active.push(stage);
                    program.push_back(ProgramStep::Other(Action::Unshard(stage)));
                }
            }
            program.push_back(ProgramStep::Passes(these.clone()));
            for pass in these {
                let (Compute::Backward(chunk) | Compute::Weight(chunk)) = pass else {
                    continue;
                };
                let Some(count) = backwards.get_mut(chunk.stage) else {
                    continue;
                };
                *count += 1;
                if *count == self.micro_batches {
                    program.push_back(ProgramStep::Other(Action::ReduceGradients(chunk.stage)));
                    program.push_back(ProgramStep::Wait);
                }
            }
        }
        let rest = active.into_iter().map(Action::Reshard);
        program.extend(rest.map(ProgramStep::Other));
        program
    }
}
