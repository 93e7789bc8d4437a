//! The job that a run is one rank of.

use super::schedule::Pipeline;
use headroom_base::mesh::{Mesh, Rank};
use headroom_scenario::{Case, Parallel, Parallelism, PolicyType, Precision, Trainer, Wrap};

/// The job that a run is one rank of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// How many GPUs each dimension of the device mesh has.
    pub mesh: Mesh,
    /// The place of this rank in the mesh.
    pub rank: Rank,
    /// How the job is divided; `of_case` replaces `Auto` dtypes by what the trainer chooses.
    pub parallel: Parallel,
    /// The library that trains, whose defaults apply to what the layout leaves open.
    pub trainer: Trainer,
    /// The model's hidden size, from which transformers computes sizes that are left to it.
    pub hidden: Option<u64>,
}

impl World {
    /// One process on one GPU.
    pub const ALONE: Self = Self {
        mesh: Mesh::ALONE,
        rank: Rank { stage: 0, shard: 0 },
        parallel: Parallel {
            strategy: Parallelism::None,
            ..Parallel::DEFAULT
        },
        trainer: Trainer::Torch,
        hidden: None,
    };

    /// One rank of a scenario's job. What its trainer decides is decided here.
    pub fn of_case(case: &Case) -> Self {
        let scenario = case.scenario;
        let trainer = scenario.stack.trainer;
        let mut world = Self {
            mesh: scenario.mesh(),
            rank: case.rank,
            parallel: scenario.parallel,
            trainer,
            hidden: case.listed_size("hidden"),
        };
        let half = match scenario.training.precision {
            Precision::AmpBf16 | Precision::AmpBf16OnBf16 => PolicyType::Bf16,
            Precision::AmpFp16 | Precision::AmpFp16OnFp16 => PolicyType::Fp16,
            _ => PolicyType::Own,
        };
        if world.shards_over_context() {
            world.mesh.shard = world.mesh.shard.saturating_mul(world.mesh.context);
        }
        let parallel = &mut world.parallel;
        if parallel.param_dtype == PolicyType::Auto {
            parallel.param_dtype = half;
        }
        if parallel.reduce_dtype == PolicyType::Auto {
            // accelerate reduces in the type it computes in; torchtitan and PyTorch's own examples in fp32.
            parallel.reduce_dtype = match half {
                PolicyType::Own => PolicyType::Own,
                _ if is_accelerate(trainer) => half,
                _ => PolicyType::Fp32,
            };
        }
        world
    }

    /// The first of `gpus` ranks under one strategy alone.
    pub fn of(strategy: Parallelism, gpus: u32) -> Self {
        let (data, shard) = match strategy {
            Parallelism::None | Parallelism::Ddp | Parallelism::DataParallel => (gpus, 1),
            _ => (1, gpus),
        };
        Self {
            mesh: Mesh {
                data,
                shard,
                ..Mesh::ALONE
            },
            parallel: Parallel {
                strategy,
                ..Parallel::DEFAULT
            },
            ..Self::ALONE
        }
    }

    /// Whether GPUs that share a sequence, and so hold equal weights, share these out too: `dp_shard_cp` of torchtitan and of
    /// accelerate.
    const fn shards_over_context(&self) -> bool {
        matches!(
            self.parallel.strategy,
            Parallelism::Fsdp2 | Parallelism::Hsdp
        )
    }

    /// The rank of a GPU, by its number.
    pub fn place_of(&self, gpu: u32) -> Rank {
        if self.parallel.strategy == Parallelism::DataParallel {
            // All but the first hold the same.
            let shard = if gpu == 0 {
                0
            } else {
                self.mesh.data.saturating_sub(1)
            };
            return Rank { stage: 0, shard };
        }
        // Where GPUs that share a sequence hold shards of their own, these are counted among the shards.
        let mut mesh = self.mesh;
        if self.shards_over_context() {
            mesh.context = 1;
        }
        mesh.rank_of(gpu)
    }

    /// The pipeline of which this is one rank; none where its schedule is not modelled.
    pub fn pipeline(&self, micro_batches: usize) -> Option<Pipeline> {
        let ranks = usize::try_from(self.mesh.stages).ok()?;
        if ranks < 2 {
            return None;
        }
        let pipeline = Pipeline {
            schedule: self.parallel.schedule,
            ranks,
            stages: usize::try_from(self.parallel.virtual_stages).ok()?.max(1),
            rank: usize::try_from(self.rank.stage).ok()?.min(ranks - 1),
            micro_batches,
            frees_sent: self.trainer == Trainer::Megatron,
        };
        pipeline.is_modelled().then_some(pipeline)
    }

    /// Which modules FSDP gathers as one.
    pub fn wrap(&self) -> Wrap {
        match self.parallel.wrap {
            // accelerate's `fsdp2_prepare_model` and torchtitan's `apply_fsdp`.
            Wrap::Auto if is_accelerate(self.trainer) => Wrap::Ends,
            Wrap::Auto if self.trainer == Trainer::Torchtitan => Wrap::Ends,
            Wrap::Auto => Wrap::Layers,
            wrap => wrap,
        }
    }

    /// The model's hidden size, where the trainer computes DeepSpeed's sizes from it.
    pub fn auto_hidden(&self) -> Option<u64> {
        self.hidden.filter(|_| is_accelerate(self.trainer))
    }

    /// Whether a model's forward returns all it returns in fp32: accelerate puts that around it with autocast
    /// (`convert_outputs_to_fp32`), which it leaves out with `fully_shard` and DeepSpeed.
    pub fn returns_fp32(&self, precision: Precision) -> bool {
        use Parallelism::{Fsdp2, Hsdp, Zero0, Zero1, Zero2, Zero3};
        let strategy = self.parallel.strategy;
        let casts = matches!(strategy, Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3);
        is_accelerate(self.trainer) && precision.autocasts() && !(casts && self.mesh.shard > 1)
    }

    /// Over how many ranks something is divided, so that the last may have less than the first.
    pub fn shards(&self) -> u32 {
        let divides_states =
            self.parallel.partition_optimizer && self.parallel.strategy == Parallelism::Ddp;
        if divides_states {
            self.mesh.data
        } else {
            self.mesh.shard
        }
    }

    /// How many ranks may hold different things, of which the last has the least: those that share something, or those that
    /// have copies of the first one's model.
    pub fn distinct_ranks(&self) -> u32 {
        match self.parallel.strategy {
            Parallelism::DataParallel => self.mesh.data,
            _ => self.shards(),
        }
    }
}

/// Whether a trainer prepares its model with accelerate.
pub(crate) fn is_accelerate(trainer: Trainer) -> bool {
    use Trainer::{Axolotl, LlamaFactory, Swift, Transformers, Trl, Unsloth};
    matches!(
        trainer,
        Transformers | Trl | Axolotl | LlamaFactory | Unsloth | Swift
    )
}
