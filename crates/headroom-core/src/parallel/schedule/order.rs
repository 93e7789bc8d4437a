//! The passes of a rank with several stages, which come round and round, in the order of each schedule
//! (`_calculate_single_rank_operations`).

use super::{Chunk, Pipeline};
use headroom_scenario::Schedule;

/// A pass, without what is between passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compute {
    Forward(Chunk),
    /// The full backward.
    Backward(Chunk),
    /// The gradients of inputs.
    Input(Chunk),
    /// Those of weights.
    Weight(Chunk),
}

impl Compute {
    pub(crate) const fn chunk(self) -> Chunk {
        match self {
            Self::Forward(chunk)
            | Self::Backward(chunk)
            | Self::Input(chunk)
            | Self::Weight(chunk) => chunk,
        }
    }
}

impl Pipeline {
    /// A rank's passes: those of one action (`OVERLAP_F_B`) together; empty where a rank waits.
    pub(super) fn computations(&self) -> Vec<Vec<Compute>> {
        let singly = |all: Vec<Compute>| all.into_iter().map(|one| vec![one]).collect();
        match self.schedule {
            Schedule::LoopedBfs => singly(self.breadth_first()),
            Schedule::ZeroBubbleV => singly(self.zero_bubble_v()),
            Schedule::DualPipeV => self.dual_pipe_v(),
            _ => singly(self.one_forward_one_backward_in_rounds()),
        }
    }

    /// `_get_1f1b_rank_ops`.
    fn one_forward_one_backward_in_rounds(&self) -> Vec<Compute> {
        let splits = self.splits_backward();
        let rounds = (self.micro_batches / self.ranks.max(1)).max(1);
        let per_round = (self.micro_batches / rounds).max(1);
        let total = self.stages * self.micro_batches;
        let each_hop = if splits { 1 } else { 2 };
        let warm_up = (self.stages - 1) * per_round + each_hop * (self.ranks - 1 - self.rank);
        let warm_up = warm_up.min(total);
        let mut forwards = vec![0; self.stages];
        let mut backwards = vec![0; self.stages];
        let mut weights = vec![0; self.stages];
        let next = |counts: &mut Vec<usize>, local: usize| {
            let micro_batch = counts[local];
            counts[local] += 1;
            Chunk {
                stage: local * self.ranks + self.rank,
                micro_batch,
            }
        };
        let backward_of = |op: usize| self.stages - 1 - (op - warm_up) / per_round % self.stages;
        let mut all = Vec::new();
        for op in 0..total + warm_up {
            if op < total {
                let local = op / per_round % self.stages;
                all.push(Compute::Forward(next(&mut forwards, local)));
            }
            if op < warm_up {
                continue;
            }
            let chunk = next(&mut backwards, backward_of(op));
            if !splits {
                all.push(Compute::Backward(chunk));
                continue;
            }
            all.push(Compute::Input(chunk));
            // Weights follow as many backwards later as there are ranks before this one.
            if op - warm_up >= self.rank {
                let local = backward_of(op - self.rank);
                all.push(Compute::Weight(next(&mut weights, local)));
            }
        }
        if splits {
            for op in (total + warm_up).saturating_sub(self.rank).max(warm_up)..total + warm_up {
                all.push(Compute::Weight(next(&mut weights, backward_of(op))));
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
