//! The space of runs around one run: the values that each axis may take.

use super::edit::{Edit, Sharding};
use super::results::{Locks, Results};
use crate::micro;
use crate::moves::conditions::{has_liger, language_model, own_loss};
use crate::moves::{Cost, Group, MOVES, Move, can_swap, most_swapped};
use headroom_base::units::Bytes;
use headroom_catalog::Os;
use headroom_core::estimate::usable;
use headroom_scenario::{
    Attention, Case, Checkpointing, Compile, Hardware, Kernels, LossKernel, Offload, Optimizer,
    Parallelism, Quantization, Scenario, Schedule, systems,
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

    /// Compiled layers or models.
    pub fn compiled(&self) -> Vec<Edit> {
        let present = self.run.training.compile;
        let all = [Compile::Nothing, Compile::Model];
        let others = all.into_iter().filter(|what| *what != present);
        let found = self.open(others.map(Edit::Compile));
        found
            .into_iter()
            .filter(|edit| self.scenario(&[*edit]).is_some())
            .collect()
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

/// Powers of two that divide this number.
fn powers(of: u32) -> impl Iterator<Item = u32> {
    (0..=of.trailing_zeros().min(12)).map(|exponent| 1 << exponent)
}

/// All ways in which the run's GPUs may share the work, by how one copy of the model is divided; of each, the way that shards
/// most comes first. The run's own is the empty one.
pub fn layouts(space: &Space) -> Vec<Vec<Vec<Edit>>> {
    let run = &space.run;
    if run.hardware.gpus < 2 {
        return vec![vec![Vec::new()]];
    }
    let of = |degrees: &ParallelDegrees| {
        let shardings = shardings(run, degrees);
        let edits =
            |(sharding, host): &(Sharding, Offload)| arranged(run, degrees, *sharding, *host);
        shardings.iter().map(edits).collect()
    };
    let mut all = degrees(run);
    // Those that divide in one way come first: what is not modelled there is not tried with another.
    all.sort_by_key(|degrees| degrees.ways());
    all.iter().map(of).collect()
}

/// The edits that lead to a layout.
fn arranged(
    run: &Scenario,
    degrees: &ParallelDegrees,
    sharding: Sharding,
    host: Offload,
) -> Vec<Edit> {
    let layout = &run.parallel;
    let present = Sharding {
        strategy: layout.strategy,
        reshard: layout.reshard,
        sync_each: layout.sync_each,
    };
    let pipeline = Edit::Pipeline {
        stages: degrees.pp,
        schedule: Schedule::OneForwardOneBackward,
        virtual_stages: 1,
    };
    let all = [
        (sharding != present, Edit::Strategy(sharding)),
        (degrees.tp != layout.tp, Edit::Tensor(degrees.tp)),
        (degrees.pp != layout.pp, pipeline),
        (degrees.cp != layout.cp, Edit::Context(degrees.cp)),
        (degrees.ep != layout.ep, Edit::Expert(degrees.ep)),
        (host != layout.offload, Edit::Host(host)),
    ];
    let differing = all.into_iter().filter(|(differs, _)| *differs);
    differing.map(|(_, edit)| edit).collect()
}

/// The degrees of a layout; the remaining factor is data parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParallelDegrees {
    tp: u32,
    pp: u32,
    cp: u32,
    ep: u32,
}

impl ParallelDegrees {
    fn ways(self) -> usize {
        let all = [self.tp, self.pp, self.cp, self.ep];
        all.iter().filter(|degree| **degree > 1).count()
    }

    const fn of_a_copy(self) -> u32 {
        self.tp.saturating_mul(self.pp).saturating_mul(self.cp)
    }
}

fn degrees(run: &Scenario) -> Vec<ParallelDegrees> {
    let hardware = &run.hardware;
    let layout = &run.parallel;
    let present = ParallelDegrees {
        tp: layout.tp,
        pp: layout.pp,
        cp: layout.cp,
        ep: layout.ep,
    };
    let mut all = vec![present];
    let training = &run.training;
    let divides = own_loss(run)
        && language_model(run)
        && training.lora.is_none()
        && training.quantization == Quantization::None;
    let gpus = hardware.gpus;
    let machine = match hardware.nodes {
        0 | 1 => gpus.min(Hardware::ON_A_MACHINE),
        nodes => gpus / nodes,
    };
    let layers = run.model.dim("layers").unwrap_or(1);
    let experts = run.model.dim("experts").unwrap_or(0);
    // Rings of GPUs are for long sequences.
    let longest = run.data.sequence / 4096;
    let may = |wanted: bool, size: u32| size == 1 || wanted;
    for tp in powers(gpus).filter(|tp| may(divides && experts == 0, *tp) && *tp <= machine) {
        for pp in powers(gpus / tp).filter(|pp| may(divides, *pp) && u64::from(*pp) <= layers) {
            let sequences = powers(gpus / tp / pp);
            for cp in sequences
                .filter(|cp| may(divides && experts == 0 && u64::from(*cp) <= longest, *cp))
            {
                let parts = powers(gpus / pp).filter(|ep| {
                    // Groups of experts smaller than a machine gain nothing on many machines.
                    let machines = hardware.nodes > 1 && *ep > 1 && *ep < machine;
                    let whole = experts > 0 && experts.is_multiple_of((*ep).into()) && !machines;
                    may(divides && whole && tp * cp == 1, *ep)
                });
                for ep in parts {
                    let found = ParallelDegrees { tp, pp, cp, ep };
                    if !all.contains(&found) {
                        all.push(found);
                    }
                }
            }
        }
    }
    all
}

/// Strategies for the data-parallel dimension, with what they keep on the host; the one that shards most without the host
/// comes first.
fn shardings(run: &Scenario, degrees: &ParallelDegrees) -> Vec<(Sharding, Offload)> {
    use Parallelism::{Ddp, Fsdp1, Fsdp2, Hsdp, Zero1, Zero2, Zero3};
    let layout = &run.parallel;
    let copies = run.hardware.gpus / degrees.of_a_copy().max(1);
    let of = |strategy, reshard, sync_each| Sharding {
        strategy,
        reshard,
        sync_each,
    };
    let own = of(layout.strategy, layout.reshard, layout.sync_each);
    let mut all: Vec<(Sharding, Offload)> = Vec::new();
    let mut add = |sharding: Sharding, host: Offload| {
        if !all.contains(&(sharding, host)) {
            all.push((sharding, host));
        }
    };
    let whole = of(Ddp, layout.reshard, layout.sync_each);
    if copies.saturating_mul(degrees.cp) < 2 {
        add(whole, Offload::None);
        add(own, layout.offload);
        return all;
    }
    let quantized = run.training.quantization != Quantization::None;
    add(of(Fsdp2, true, true), Offload::None);
    add(own, layout.offload);
    if degrees.pp < 2 {
        // A pipeline's stages stay gathered from the first pass to the last, whatever `reshard` says.
        add(of(Fsdp2, false, true), Offload::None);
    }
    if run.hardware.nodes > 1 && copies.is_multiple_of(run.hardware.nodes) {
        add(of(Hsdp, true, true), Offload::None);
    }
    if degrees.ep < 2 {
        add(whole, Offload::None);
    }
    if degrees.of_a_copy() == 1 && degrees.ep < 2 {
        add(of(Fsdp2, true, false), Offload::None);
        add(of(Fsdp2, false, false), Offload::None);
        if quantized {
            add(of(Fsdp1, true, true), Offload::None);
            add(of(Fsdp1, true, true), Offload::Parameters);
        }
        for zero in [Zero1, Zero2, Zero3] {
            add(of(zero, true, layout.sync_each), Offload::None);
            add(of(zero, true, layout.sync_each), Offload::Optimizer);
        }
        add(of(Fsdp2, true, true), Offload::Parameters);
        add(of(Zero3, true, layout.sync_each), Offload::Parameters);
    }
    all
}

/// The case's number of layers, for words.
pub fn layers(run: &Scenario) -> Option<u64> {
    Case::of(run).listed_size("layers")
}
