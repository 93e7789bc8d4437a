//! Schedules of ranks that have one stage each (`PipelineScheduleSingle`).

use super::{Action, Chunk, Pipeline};

impl Pipeline {
    const fn chunk(&self, micro_batch: usize) -> Chunk {
        Chunk {
            stage: self.rank,
            micro_batch,
        }
    }

    /// `ScheduleGPipe`: sends are waited for once all forwards have run; the gradient of an input goes as the next
    /// backward begins.
    pub(super) fn gpipe(&self) -> Vec<Action> {
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
        all.push(Action::ReduceGradients(self.rank));
        all
    }

    /// `Schedule1F1B`: an output goes after the next forward, or as the next backward begins; the gradient of an input after
    /// the next backward.
    pub(super) fn one_forward_one_backward(&self) -> Vec<Action> {
        self.alternating(self.most_in_flight(), self.micro_batches)
    }

    /// Two micro-batches in flight represent more: of these the first makes the gradients, the second adds to them, and a third
    /// shows a forward with gradients present. The last stage has one in flight, and keeps something of each.
    ///
    /// The third's backward adds to the gradients as the second's does, with one micro-batch fewer in flight: it never reaches the peak.
    pub(super) fn peak_one_forward_one_backward(&self, memory_alone: bool) -> Vec<Action> {
        let in_flight = self.most_in_flight();
        let together = in_flight.min(2);
        let all = match in_flight {
            1 => self.micro_batches.min(3),
            _ => together + usize::from(self.micro_batches > in_flight),
        };
        let mut actions = self.alternating(together, all);
        if memory_alone && together == 2 && all == 3 {
            self.leave_out_third(&mut actions);
        }
        let (first, second) = (self.chunk(0), self.chunk(1));
        let (measured, left_out, last) = match in_flight {
            1 => (
                (Action::Backward(first), Action::ReleaseInputGradient(first)),
                self.micro_batches - all,
                Action::ReduceGradients(self.rank),
            ),
            _ => (
                (Action::Forward(first), Action::ReleaseOutput(first)),
                in_flight - together,
                Action::Backward(second),
            ),
        };
        if left_out == 0 {
            return actions;
        }
        for (action, next) in [
            (measured.0, Action::Measure),
            (measured.1, Action::HoldInFlight(left_out)),
            (last, Action::ReleaseHeld),
        ] {
            if let Some(at) = actions.iter().position(|other| *other == action) {
                actions.insert(at + 1, next);
            }
        }
        actions
    }

    /// Lets the third micro-batch go in place of its backward.
    fn leave_out_third(&self, actions: &mut Vec<Action>) {
        let (second, third) = (self.chunk(1), self.chunk(2));
        actions.retain(|action| {
            let of_third = [
                Action::ReceiveGradient(third),
                Action::ReleaseInputGradient(second),
            ];
            !of_third.contains(action)
        });
        let backward = actions
            .iter()
            .position(|other| *other == Action::Backward(third));
        if let Some(at) = backward {
            let released = [second, third].map(Action::ReleaseInputGradient);
            actions.splice(at..=at, released);
        }
    }

    /// Micro-batches whose backward is to come, once the pipeline is full.
    fn most_in_flight(&self) -> usize {
        self.micro_batches
            .min(self.ranks - self.rank.min(self.ranks))
    }

    /// This many forwards first, then a backward and a forward in turns.
    fn alternating(&self, warm_up: usize, micro_batches: usize) -> Vec<Action> {
        let mut all = Vec::new();
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
        while backward < micro_batches {
            if !last {
                all.push(Action::ReceiveGradient(self.chunk(backward)));
                if backward + warm_up <= micro_batches && forward > 0 {
                    all.push(Action::ReleaseOutput(self.chunk(forward - 1)));
                }
            }
            push_backward(&mut all, backward);
            backward += 1;
            if forward < micro_batches {
                push_forward(&mut all, forward);
                forward += 1;
            }
        }
        all.push(Action::ReduceGradients(self.rank));
        all
    }
}
