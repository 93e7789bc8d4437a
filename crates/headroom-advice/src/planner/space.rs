//! The space of runs around one run: the values that each axis may take.

use super::edit::Edit;
use super::results::{Locks, Results};
use crate::micro;
use crate::moves::conditions::{has_liger, own_loss};
use crate::moves::{Cost, Group, MOVES, Move, can_swap, most_swapped};
use headroom_base::units::Bytes;
use headroom_catalog::Os;
use headroom_core::estimate::usable;
use headroom_scenario::{
    Attention, Case, Checkpointing, Compile, Kernels, LossKernel, Optimizer, Scenario, systems,
};

/// A run, the samples that each of its updates sees, and what may change.
#[derive(Debug)]
pub struct Space {
    pub run: Scenario,
    pub samples: u64,
    pub locks: Locks,
    /// Whether an update's samples may be cut in other micro-batches.
    pub cuts: bool,
    /// Whether the run itself may be proposed.
    pub accepts_run: bool,
    /// Usable memory that no run may use.
    pub kept_free: Bytes,
}

impl Space {
    pub fn new(run: &Scenario, locks: Locks) -> Self {
        Self {
            samples: run.effective_batch(),
            cuts: locks.most >= Results::SameBatch || !super::differs_when_cut(run),
            accepts_run: locks.accept(run),
            kept_free: usable(run).unwrap_or_default().scale(locks.goal.margin),
            run: run.clone(),
            locks,
        }
    }

    /// Whether only runs are proposed that some program can run.
    pub fn asks_some(&self) -> bool {
        self.locks.accepts.is_some() && !self.locks.is_strict() && self.accepts_run
    }

    /// The run with these edits, which are sorted by axis; `None` if they are impossible together, or something locked would
    /// change.
    pub fn scenario(&self, edits: &[Edit]) -> Option<Scenario> {
        let mut changed = self.run.clone();
        for edit in edits {
            changed = edit.on(&changed)?;
        }
        let (batch, before) = (changed.batch(), self.run.batch());
        if batch.samples() != self.samples || batch.micro_batch != before.micro_batch {
            let replicas = batch.replicas.max(1);
            let each = self.samples / replicas;
            if !self.samples.is_multiple_of(replicas) || each == 0 {
                return None;
            }
            let chosen = edits.iter().any(|edit| matches!(edit, Edit::MicroBatch(_)));
            if !chosen {
                changed.data.micro_batch = common_divisor(each, batch.micro_batch);
            }
            if !each.is_multiple_of(changed.data.micro_batch) {
                return None;
            }
            changed.training.accumulation = each / changed.data.micro_batch;
        }
        let layout = &changed.parallel;
        let fills = changed.training.accumulation >= u64::from(layout.pp)
            || *layout == self.run.parallel && changed.data == self.run.data;
        let allowed = fills
            && changed.check().is_empty()
            && self.locks.keep(&self.run, &changed)
            && systems::follows(&self.run, &changed);
        allowed.then_some(changed)
    }

    /// Micro-batches that keep the samples of an update, the largest first.
    pub fn micro_batches(&self, layout: &[Edit]) -> Vec<u64> {
        const MOST: usize = 24;
        let placed = layout.iter().filter(|edit| edit.is_of_layout());
        let mut placed = placed.fold(self.run.clone(), |run, edit| edit.on(&run).unwrap_or(run));
        let each = self.samples / placed.replicas().max(1);
        if !self.cuts {
            let same = common_divisor(each.max(1), self.run.data.micro_batch);
            return vec![same];
        }
        placed.data.micro_batch = each.max(1);
        placed.training.accumulation = 1;
        let all = micro::all(&placed);
        let every = all.len().div_ceil(MOST).max(1);
        let last = all.len().saturating_sub(1);
        let kept = all.iter().enumerate();
        let kept = kept.filter(|(at, _)| at % every == 0 || *at == last);
        // A system's own program may have no way to accumulate.
        let system = systems::of(&self.run).is_some();
        let runs = |size: &u64| {
            let edits = super::evaluate::with(layout, Edit::MicroBatch(*size));
            !system || self.scenario(&edits).is_some()
        };
        kept.map(|(_, size)| *size).filter(runs).collect()
    }

    fn open(&self, edits: impl IntoIterator<Item = Edit>) -> Vec<Edit> {
        edits
            .into_iter()
            .filter(|edit| edit.results() <= self.locks.most)
            .filter(|edit| edit.on(&self.run).is_some())
            .filter(|edit| {
                let changed = edit.on(&self.run);
                changed.is_none_or(|changed| self.locks.keep(&self.run, &changed))
            })
            .collect()
    }

    fn moves(&self, wanted: impl Fn(&Move) -> bool) -> Vec<Edit> {
        let found = MOVES.iter().filter(|change| wanted(change));
        self.open(found.map(Edit::Move))
    }

    /// Ways to save or recompute activations, from the fastest to the smallest.
    pub fn checkpointing(&self) -> Vec<Edit> {
        let all = [
            (Checkpointing::None, 1),
            (Checkpointing::KeepMatmuls, 1),
            (Checkpointing::KeepHalf, 1),
            (Checkpointing::KeepAttention, 1),
            (Checkpointing::Layers, 1),
            (Checkpointing::Offload, 1),
        ];
        let usable = |&(how, every): &(Checkpointing, u64)| {
            let plain = matches!(how, Checkpointing::None | Checkpointing::Layers) && every <= 1;
            plain || own_loss(&self.run)
        };
        let training = &self.run.training;
        let present = (training.checkpointing, training.checkpoint_every);
        let others = all.into_iter().filter(usable);
        let others = others.filter(|value| {
            *value != present && (value.0 != Checkpointing::None || present.0 != value.0)
        });
        others
            .map(|(how, every)| Edit::Checkpointing(how, every))
            .filter(|edit| edit.results() <= self.locks.most)
            .collect()
    }

    /// How the loss is computed.
    pub fn losses(&self) -> Vec<Edit> {
        // Chunks of logits save all that chunks of the cross-entropy alone save.
        let all = [
            LossKernel::Library,
            LossKernel::ChunkedHead,
            LossKernel::ChunkedCheckpoint,
            LossKernel::LigerLinear,
        ];
        let present = self.run.training.loss;
        // On several GPUs the choice matters less than the layout.
        let several = self.run.hardware.gpus > 1;
        let others = all.into_iter().filter(|kernel| {
            *kernel != present && (!several || *kernel == LossKernel::LigerLinear)
        });
        let mut found = self.open(others.map(Edit::Loss));
        found.extend(self.moves(|change| change.id == "fused-head"));
        found
    }

    /// Implementations of the run's own optimizer, and where its states live.
    pub fn optimizers(&self) -> Vec<Edit> {
        use Optimizer::{
            AdamW, AdamW8bit, AdamW8bitAo, AdamWFused, AdamWLoop, AdamWOffload, AdamWTwoLists,
            PagedAdamW, PagedAdamW8bit,
        };
        let present = self.run.training.optimizer;
        let all: &[Optimizer] = match present {
            AdamW | AdamWTwoLists | AdamWLoop | AdamWFused | PagedAdamW => &[
                AdamWFused,
                AdamW8bit,
                AdamW8bitAo,
                PagedAdamW,
                PagedAdamW8bit,
                AdamWOffload,
            ],
            AdamW8bit | AdamW8bitAo | PagedAdamW8bit => &[AdamW8bit, AdamW8bitAo, PagedAdamW8bit],
            _ => &[],
        };
        let others = all.iter().filter(|optimizer| {
            // An optimizer that a trainer after pre-training does not start.
            **optimizer != present && (own_loss(&self.run) || **optimizer != AdamWOffload)
        });
        others
            .map(|optimizer| Edit::Optimizer(*optimizer))
            .filter(|edit| edit.results() <= self.locks.most)
            .filter(|edit| {
                let mut changed = self.run.clone();
                if let Edit::Optimizer(optimizer) = edit {
                    changed.training.optimizer = *optimizer;
                }
                self.locks.keep(&self.run, &changed)
            })
            .collect()
    }

    /// The optimizer inside backward, if the run may do that.
    pub fn in_backward(&self) -> Option<Edit> {
        let training = &self.run.training;
        let possible = own_loss(&self.run)
            && !training.optimizer_in_backward
            && !training.optimizer.consumes_gradients();
        let mut changed = self.run.clone();
        changed.training.optimizer_in_backward = true;
        (possible && self.locks.keep(&self.run, &changed)).then_some(Edit::InBackward(true))
    }

    /// Changes that are worth a try together with every other: they never change results beyond rounding.
    pub fn toggles(&self) -> Vec<Edit> {
        let mut all = self.moves(|change| {
            let group = matches!(
                change.group,
                Group::Outputs | Group::Cache | Group::Zeroing | Group::Evaluation
            );
            group && change.cost == Cost::Free
        });
        if self.run.training.attention == Attention::Eager {
            all.extend(self.open([Edit::Attention(Attention::Sdpa)]));
        }
        let liger = has_liger(&self.run) && own_loss(&self.run);
        if liger && self.run.training.kernels != Kernels::Liger {
            all.extend(self.open([Edit::Kernels(Kernels::Liger)]));
        }
        all
    }

    /// Compiled models, or layers where several GPUs divide the model for a program that is named: of the programs in general some
    /// run Liger's kernels, which are as fast there and seldom need more.
    pub fn compiled(&self) -> Vec<Edit> {
        let present = self.run.training.compile;
        let divided = self.run.hardware.gpus > 1 && self.locks.is_strict();
        let most = if divided {
            Compile::Layers
        } else {
            Compile::Model
        };
        let others = [Compile::Nothing, most].into_iter();
        let mut found = self.open(others.filter(|what| *what != present).map(Edit::Compile));
        // Layers may be compiled only once the model is divided.
        found.retain(|edit| divided || self.scenario(&[*edit]).is_some());
        found
    }

    /// Autocast, or a frozen base in bf16.
    pub fn precisions(&self) -> Vec<Edit> {
        self.moves(|change| matches!(change.id, "amp-bf16" | "amp-fp16" | "bf16-base"))
    }

    /// Changes that are seldom possible, each tried on its own.
    pub fn rare(&self) -> Vec<Edit> {
        let named = |change: &Move| {
            matches!(
                change.group,
                Group::Encoder
                    | Group::Average
                    | Group::Buckets
                    | Group::Padding
                    | Group::Cached
                    | Group::Cache
            ) && change.cost != Cost::Free
                || change.id == "bucket-view"
        };
        let mut all = self.moves(|change| named(change) && change.results < Results::Changes);
        all.extend(self.block_swaps());
        all
    }

    /// More and more blocks that wait on the host.
    fn block_swaps(&self) -> Vec<Edit> {
        const PARTS: u64 = 4;
        if !can_swap(&self.run) {
            return Vec::new();
        }
        let most = most_swapped(&self.run).unwrap_or(0);
        let mut counts: Vec<u64> = (1..=PARTS).map(|part| most * part / PARTS).collect();
        counts.retain(|count| *count > self.run.training.block_swap);
        counts.dedup();
        self.open(counts.into_iter().map(Edit::BlockSwap))
    }

    /// The allocator's option, if it is off.
    pub fn expandable(&self) -> Option<Edit> {
        let off = !self.run.runtime.expandable_segments && self.run.hardware.os == Os::Linux;
        let found = self.open([Edit::Expandable]);
        found.first().copied().filter(|_| off)
    }

    /// Changes of training itself, the mildest first.
    pub fn sacrifices(&self) -> Vec<Edit> {
        let of_training = MOVES
            .iter()
            .filter(|change| change.results == Results::Changes);
        of_training
            .map(Edit::Move)
            .filter(|edit| {
                let changed = edit.on(&self.run);
                changed.is_some_and(|changed| self.locks.keep(&self.run, &changed))
            })
            .collect()
    }
}

impl Edit {
    /// Whether it says how GPUs share the work.
    pub fn is_of_layout(&self) -> bool {
        matches!(
            self,
            Self::Strategy(_)
                | Self::Tensor(_)
                | Self::Pipeline { .. }
                | Self::Context(_)
                | Self::Expert(_)
                | Self::Host(_)
        )
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The case's number of layers, for words.
pub fn layers(run: &Scenario) -> Option<u64> {
    Case::of(run).listed_size("layers")
}
