//! How it is spread over GPUs.

use crate::{CommHook, ContextParallel, Offload, Parallelism, PolicyType, Schedule, Toggle, Wrap};

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
