//! The sections of a scenario and their defaults.

use std::num::NonZero;

use std::collections::BTreeMap;

use super::network::Network;
use super::task::Task;
use super::{
    AdapterMethod, Attention, Checkpointing, CommHook, Compile, CompileMode, ContextParallel,
    Distribution, Kernels, LossKernel, LowPrecision, Offload, Optimizer, Parallelism, PolicyType,
    Precision, Quantization, Schedule, Toggle, Trainer, Wrap,
};
use headroom_catalog::{self as catalog, ModelCategory, ModelEntry, Os};

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The format's version, `Scenario::VERSION` for everything this program writes.
    pub version: u32,
    pub hardware: Hardware,
    pub model: Model,
    pub data: Data,
    pub training: Training,
    pub parallel: Parallel,
    pub stack: Stack,
    pub runtime: Runtime,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// A catalogue id, such as `a100-sxm4-80gb`.
    pub gpu: String,
    pub gpus: u32,
    /// Over how many machines the GPUs are spread.
    pub nodes: u32,
    /// What the driver reports, in MiB, in place of the catalogue's value.
    pub memory_mib: Option<NonZero<u64>>,
    /// NVIDIA's compute capability, in place of the catalogue's.
    pub capability: Option<(u8, u8)>,
    /// GB/s, in place of the catalogue's.
    pub bandwidth: Option<NonZero<u64>>,
    /// Dense 16-bit TFLOPS, in place of the catalogue's.
    pub tflops: Option<NonZero<u64>>,
    pub os: Os,
    /// Whether the card also drives a display.
    pub display: bool,
}

impl Hardware {
    /// GPUs per machine where `nodes` is not set: NVIDIA's DGX and HGX boards.
    pub const ON_A_MACHINE: u32 = 8;

    /// How many GPUs are on one machine.
    pub fn gpus_of_a_machine(&self) -> u32 {
        match self.nodes {
            0 | 1 => self.gpus.min(Self::ON_A_MACHINE),
            nodes => self.gpus.div_ceil(nodes),
        }
        .max(1)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// A catalogue id, such as `gpt2`.
    pub id: String,
    /// Dimensions that differ from the catalogue's (`layers`, `vocab`, `hidden`, ...).
    pub dims: BTreeMap<String, u64>,
    /// A user-defined network instead of a catalogue model.
    pub network: Option<Network>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub micro_batch: u64,
    /// Tokens in a sample; images take their size from the model's dimensions.
    pub sequence: u64,
    /// Pixels and frames of a sample of a diffusion network; zero for the model's own.
    pub height: u64,
    pub width: u64,
    pub frames: u64,
    /// Whether batches carry a real padding mask.
    pub padding_mask: bool,
    pub distribution: Distribution,
    /// Lengths of samples, or edges of graphs; zero where not known.
    pub mean: u64,
    pub p95: u64,
    pub max: u64,
    /// Samples in an epoch; zero where not known.
    pub samples: u64,
    /// Edges that a batch of graphs may have; zero for any number.
    pub batch_max: u64,
    /// Short samples are joined until they fill the sequence.
    pub packing: bool,
    /// Samples that one optimizer step should see.
    pub global_batch: Option<NonZero<u64>>,
    /// Pictures in a sample, of models that read pictures in texts.
    pub images: u64,
    /// Pixels; zero for the size the model was trained at.
    pub image_height: u64,
    pub image_width: u64,
    /// Heights and widths where they differ, such as `448x672`; repeated for all pictures.
    pub image_sizes: Vec<String>,
    /// Tiles of a picture; zero where the processor decides.
    pub image_tiles: u64,
    /// Mel frames of sound in a sample, of models that take any number; zero for the model's own.
    pub audio_frames: u64,
}

#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the training loop, free of the others"
)]
pub struct Training {
    /// What the model is trained to do; in files a section of its own.
    pub task: Task,
    pub precision: Precision,
    /// Linear layers multiply in fp8.
    pub fp8: bool,
    /// Inputs and weights of linear layers are rounded as if quantised (torchao's QAT).
    pub qat: bool,
    /// The low-precision recipe of linear layers (other than `fp8`).
    pub low_precision: LowPrecision,
    pub optimizer: Optimizer,
    pub attention: Attention,
    pub checkpointing: Checkpointing,
    /// Of how many layers one is checkpointed.
    pub checkpoint_every: u64,
    /// How many layers of a pipeline's stage are checkpointed, from its first on; 0 for all.
    pub checkpoint_first: u64,
    /// Micro-batches added up before one optimizer step.
    pub accumulation: u64,
    pub loss: LossKernel,
    /// Into how many parts a chunked loss cuts the tokens.
    pub loss_chunks: u64,
    pub kernels: Kernels,
    /// What `torch.compile` is called on.
    pub compile: Compile,
    pub compile_mode: CompileMode,
    /// `activation_memory_budget`: the share of what a compiled graph would keep that it may.
    pub memory_budget: f64,
    /// Each parameter is stepped as soon as its gradient is complete.
    pub optimizer_in_backward: bool,
    pub quantization: Quantization,
    /// Blocks of a diffusion network whose frozen weights wait in host memory (`blocks_to_swap`).
    pub block_swap: u64,
    /// Low-rank adapters; absent means every unfrozen weight is trained.
    pub lora: Option<Lora>,
    /// Parameters whose path contains one of these are frozen.
    pub freeze: Vec<String>,
    /// Where not empty, parameters whose path contains none of these are frozen.
    pub train_only: Vec<String>,
    pub dropout: bool,
    /// The peak learning rate; `None` where it is the program's own.
    pub learning_rate: Option<f64>,
    pub clip: bool,
    pub ema: bool,
    /// The moving average lives in the host's memory.
    pub ema_on_host: bool,
    /// Learned tokens before each sample, which are all that is trained (prompt tuning).
    pub prompt_tokens: u64,
    /// The width of the network that these come out of (p-tuning); zero where the tokens are learned directly.
    pub prompt_hidden: u64,
    /// Norms are cast up to fp32 over a quantised base (`prepare_model_for_kbit_training` of PEFT).
    pub fp32_norms: bool,
    /// `zero_grad(set_to_none=True)`, PyTorch's default since 2.0.
    pub zero_to_none: bool,
    /// `zero_grad()` is called between forward and backward: gradients live through the forward pass.
    pub zero_late: bool,
    /// The model's output object is alive during backward.
    pub keep_outputs: bool,
    pub use_cache: bool,
    pub channels_last: bool,
}

impl Training {
    /// Whether what a compiled graph of this architecture keeps is known. Within a budget it is of Llama in bf16: under autocast, and
    /// with dropout, PyTorch keeps less than the cuts here.
    pub fn budget_is_known(&self, architecture: &str) -> bool {
        let within = self.memory_budget > 0.0 && self.memory_budget < 1.0;
        !within || self.precision == Precision::Bf16 && architecture == "llama"
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    pub method: AdapterMethod,
    pub rank: u64,
    /// Linear layers whose last path part is one of these get an adapter.
    pub targets: Vec<String>,
    /// Layers whose path contains one of these get none.
    pub exclude: Vec<String>,
    /// The blocks of OFT, BOFT and C3A; 0 for the method's own size.
    pub block: u64,
    /// Modules whose path ends in one of these are kept, and a copy of each is fully trained.
    pub modules_to_save: Vec<String>,
    /// The targets whose input IA3 scales; where empty, those that PEFT knows.
    pub feed_forward: Vec<String>,
    pub dropout: f64,
    /// Adapters in fp32 over a 16-bit base, PEFT's default.
    pub fp32_adapters: bool,
}

/// How GPUs share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of a wrapper's own, free of the others"
)]
pub struct Parallel {
    pub strategy: Parallelism,
    /// Over how many GPUs each matrix is divided.
    pub tp: u32,
    /// Over how many GPUs the layers are divided.
    pub pp: u32,
    /// Over how many GPUs each sequence is divided.
    pub cp: u32,
    /// Over how many GPUs the experts are divided.
    pub ep: u32,
    /// The size of DDP's buckets, in MiB.
    pub bucket_mb: u64,
    /// DDP's gradients live in its buckets.
    pub bucket_view: bool,
    /// What DDP sends its buckets as, and the rank of PowerSGD's factors.
    pub comm_hook: CommHook,
    pub powersgd_rank: u64,
    /// Each of DDP's replicas steps a part of the parameters (`ZeroRedundancyOptimizer`).
    pub partition_optimizer: bool,
    /// Which modules FSDP gathers as one.
    pub wrap: Wrap,
    /// FSDP gathers weights again for backward.
    pub reshard: bool,
    /// Over how many GPUs weights are sharded between forward and backward; zero is all.
    pub reshard_to: u32,
    /// The root, which backward needs first, is resharded too.
    pub reshard_root: bool,
    /// The types of FSDP's mixed precision: of gathered weights, and in which gradients are reduced.
    pub param_dtype: PolicyType,
    pub reduce_dtype: PolicyType,
    /// Four-bit weights are stored in a floating type, so that they can be sharded.
    pub shard_quantized: bool,
    /// How many units FSDP prefetches; zero is its default.
    pub prefetch_forward: u32,
    pub prefetch_backward: u32,
    /// Gradients are reduced after each micro-batch, not once a step.
    pub sync_each: bool,
    /// Under tensor parallel, norms and residuals see a part of the tokens on each GPU.
    pub sequence_parallel: bool,
    /// Under tensor parallel, the loss is computed of a part of the logits on each GPU.
    pub loss_parallel: bool,
    /// How GPUs that share a sequence attend to all of it.
    pub context: ContextParallel,
    /// The order of a pipeline's passes.
    pub schedule: Schedule,
    /// How many stages of the pipeline each GPU has.
    pub virtual_stages: u32,
    /// The sizes of ZeRO's buffers and the limits of stage 3, in elements; zero leaves one to the program.
    pub zero_bucket: u64,
    pub zero_prefetch: u64,
    pub zero_persistence: u64,
    pub zero_live: u64,
    pub zero_reuse: u64,
    pub zero_subgroup: u64,
    /// Whether ZeRO overlaps reduction with backward.
    pub zero_overlap: Toggle,
    /// ZeRO copies gradients into a contiguous buffer as they are produced.
    pub zero_contiguous: bool,
    /// ZeRO's master weights, their gradients and states are in bf16.
    pub zero_bf16_master: bool,
    pub offload: Offload,
}

/// The software a run uses; its defaults change with its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    pub trainer: Trainer,
    /// `None` is the newest that the catalogue knows.
    pub trainer_version: Option<(u8, u8)>,
    /// PyTorch's version, major and minor.
    pub torch: (u8, u8),
    pub transformers: (u8, u8),
    pub peft: (u8, u8),
    pub bitsandbytes: (u8, u8),
    pub liger: (u8, u8),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// `expandable_segments:True` in the allocator's settings.
    pub expandable_segments: bool,
    pub max_split_size_mb: Option<NonZero<u64>>,
    pub garbage_collection_threshold: Option<f64>,
    pub roundup_power2_divisions: Option<NonZero<u32>>,
    /// The share of the GPU that the allocator may reserve.
    pub memory_fraction: Option<f64>,
    /// MiB in use on the GPU outside PyTorch, as measured; in place of the catalogue's.
    pub outside_mib: Option<NonZero<u64>>,
    /// What a run was measured to allocate beyond its prediction, in MiB.
    pub kept_mib: u64,
    pub workers: u32,
    /// Batches that each worker holds ready.
    pub prefetch: u32,
    pub pin_memory: bool,
    /// The data set, where all of it is loaded.
    pub dataset_gib: f64,
    /// `None` where nothing is evaluated.
    pub eval_batch: Option<NonZero<u64>>,
    /// Optimizer steps between evaluations, in place of a share of an epoch.
    pub eval_every: Option<NonZero<u64>>,
    /// The share of an epoch between evaluations, where no steps are given.
    pub eval_interval: f64,
    /// Samples in the evaluation set, divided over data-parallel GPUs; zero where not known.
    pub eval_samples: u64,
    /// The share of them that is evaluated; above one, a number of batches.
    pub eval_limit: f64,
    /// Bytes of each evaluated sample that stay on the GPU until the run ends.
    pub eval_keeps: u64,
    pub epochs: Option<NonZero<u64>>,
    /// Optimizer steps of the run; `None` where its epochs decide.
    pub max_steps: Option<NonZero<u64>>,
    /// Optimizer steps between checkpoints; `None` where nothing is saved.
    pub save_every: Option<NonZero<u64>>,
    /// How many checkpoints are kept; `None` keeps all.
    pub save_keep: Option<NonZero<u64>>,
}

impl Model {
    /// A dimension: as the scenario changes it, as its own network names it, or as the catalogue has it.
    pub fn dim(&self, name: &str) -> Option<u64> {
        let changed = self.dims.get(name).copied();
        changed.or_else(|| match &self.network {
            Some(network) => network.size(name),
            None => catalog::model(&self.id)?.size(name),
        })
    }
}

impl Model {
    /// Whether samples are texts with pictures in them, of any number and size.
    pub fn reads_pictures(&self) -> bool {
        let listed = catalog::model(&self.id).filter(|_| self.network.is_none());
        listed.is_some_and(|entry| {
            entry.category == ModelCategory::VisionLanguage && entry.graph.is_empty()
        })
    }
}

impl Scenario {
    /// The version of the format: of files and of links.
    pub const VERSION: u32 = 1;

    /// The default scenario with this model, in sequences that it has places for.
    pub fn of_model(model: &ModelEntry) -> Self {
        let mut scenario = Self::default();
        scenario.model.id = model.id.into();
        if let Some(places) = model.size("ctx").filter(|places| *places > 0) {
            scenario.data.sequence = scenario.data.sequence.min(places);
        }
        scenario
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            version: Self::VERSION,
            hardware: Hardware::default(),
            model: Model::default(),
            data: Data::default(),
            training: Training::default(),
            parallel: Parallel::default(),
            stack: Stack::default(),
            runtime: Runtime::default(),
        }
    }
}
impl Default for Hardware {
    fn default() -> Self {
        Self {
            gpu: "rtx-4090".into(),
            gpus: 1,
            nodes: 1,
            memory_mib: None,
            capability: None,
            bandwidth: None,
            tflops: None,
            os: Os::default(),
            display: false,
        }
    }
}
impl Default for Model {
    fn default() -> Self {
        Self {
            id: "gpt2".into(),
            dims: BTreeMap::new(),
            network: None,
        }
    }
}
impl Default for Data {
    fn default() -> Self {
        Self {
            micro_batch: 8,
            sequence: 1024,
            height: 0,
            width: 0,
            frames: 0,
            padding_mask: false,
            distribution: Distribution::default(),
            mean: 0,
            p95: 0,
            max: 0,
            samples: 0,
            batch_max: 0,
            packing: false,
            global_batch: None,
            images: 1,
            image_height: 0,
            image_width: 0,
            image_sizes: Vec::new(),
            image_tiles: 0,
            audio_frames: 0,
        }
    }
}
impl Default for Training {
    fn default() -> Self {
        Self {
            task: Task::default(),
            precision: Precision::default(),
            fp8: false,
            qat: false,
            low_precision: LowPrecision::default(),
            optimizer: Optimizer::default(),
            attention: Attention::default(),
            checkpointing: Checkpointing::default(),
            checkpoint_every: 1,
            checkpoint_first: 0,
            loss: LossKernel::default(),
            loss_chunks: 8,
            kernels: Kernels::default(),
            compile: Compile::default(),
            compile_mode: CompileMode::default(),
            memory_budget: 1.0,
            optimizer_in_backward: false,
            quantization: Quantization::default(),
            block_swap: 0,
            accumulation: 1,
            lora: None,
            freeze: Vec::new(),
            train_only: Vec::new(),
            dropout: true,
            learning_rate: None,
            clip: false,
            ema: false,
            ema_on_host: false,
            prompt_tokens: 0,
            prompt_hidden: 0,
            fp32_norms: false,
            zero_to_none: true,
            zero_late: false,
            keep_outputs: false,
            use_cache: false,
            channels_last: false,
        }
    }
}
impl Lora {
    /// Whether a target names the module at this path: it is the path's end, such as `q_proj` or `to_out.0`.
    pub fn names(target: &str, path: &str) -> bool {
        let before = path.strip_suffix(target);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// How large the blocks are that it turns or multiplies by.
    pub fn block(&self) -> u64 {
        match (self.block, self.method) {
            // `boft_block_size`, C3A's `block_size` and `oft_block_size` by default.
            (0, AdapterMethod::Boft) => 4,
            (0, AdapterMethod::C3a) => 256,
            (0, _) => 32,
            (block, _) => block,
        }
    }
}

impl Default for Lora {
    fn default() -> Self {
        Self {
            method: AdapterMethod::default(),
            rank: 16,
            targets: ["q_proj", "k_proj", "v_proj", "o_proj"]
                .map(String::from)
                .to_vec(),
            exclude: Vec::new(),
            block: 0,
            modules_to_save: Vec::new(),
            feed_forward: Vec::new(),
            dropout: 0.0,
            fp32_adapters: true,
        }
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self {
            trainer: Trainer::default(),
            trainer_version: None,
            torch: (2, 15),
            transformers: (5, 23),
            peft: (0, 21),
            bitsandbytes: (0, 50),
            liger: (0, 8),
        }
    }
}

impl Default for Parallel {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Parallel {
    pub const DEFAULT: Self = Self {
        strategy: Parallelism::Ddp,
        tp: 1,
        pp: 1,
        cp: 1,
        ep: 1,
        bucket_mb: 25,
        bucket_view: false,
        comm_hook: CommHook::None,
        powersgd_rank: 1,
        partition_optimizer: false,
        wrap: Wrap::Auto,
        reshard: true,
        reshard_to: 0,
        reshard_root: true,
        param_dtype: PolicyType::Auto,
        reduce_dtype: PolicyType::Auto,
        shard_quantized: false,
        prefetch_forward: 0,
        prefetch_backward: 0,
        sync_each: false,
        sequence_parallel: false,
        loss_parallel: false,
        context: ContextParallel::Ring,
        schedule: Schedule::OneForwardOneBackward,
        virtual_stages: 1,
        zero_bucket: 0,
        zero_prefetch: 0,
        zero_persistence: 0,
        zero_live: 0,
        zero_reuse: 0,
        zero_subgroup: 0,
        zero_overlap: Toggle::Auto,
        zero_contiguous: true,
        zero_bf16_master: false,
        offload: Offload::None,
    };
}

impl Parallel {
    /// Whether a pipeline's backward is split in two: input gradients first, weight gradients later.
    pub const fn splits_backward(&self) -> bool {
        let in_parts = matches!(
            self.schedule,
            Schedule::ZeroBubble | Schedule::ZeroBubbleV | Schedule::DualPipeV
        );
        self.pp > 1 && in_parts
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            expandable_segments: false,
            max_split_size_mb: None,
            garbage_collection_threshold: None,
            roundup_power2_divisions: None,
            memory_fraction: None,
            outside_mib: None,
            kept_mib: 0,
            workers: 0,
            prefetch: 2,
            pin_memory: false,
            dataset_gib: 0.0,
            eval_batch: None,
            eval_every: None,
            eval_interval: 1.0,
            eval_samples: 0,
            eval_limit: 1.0,
            eval_keeps: 0,
            epochs: None,
            max_steps: None,
            save_every: None,
            save_keep: None,
        }
    }
}
