//! What host memory is used for.

use serde::Serialize;

/// A use of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostUse {
    /// Batches that the workers of a `DataLoader` have prefetched or are collating.
    Batches,
    /// Page-locked copies of the batches that wait (`pin_memory=True`).
    PinnedBatches,
    /// The data set that each process loads, and copies of it in workers.
    DataSet,
    /// Offloaded weights and gradients in page-locked memory.
    PinnedStates,
    /// States of paged optimizers, or of an optimizer that steps on the host.
    OptimizerStates,
    /// Activations that `save_on_cpu` moves to the host.
    Activations,
    /// Frozen weights of blocks that change places with others on the GPU.
    SwappedBlocks,
    /// A moving average of the weights that is kept on the host.
    Average,
    /// The checkpoint that is read when the run is resumed.
    Checkpoint,
    /// The full weights that rank 0 gathers to write a checkpoint.
    Gathering,
}

impl HostUse {
    /// Its name, its reason, and the source.
    pub const fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Batches => (
                "batches",
                "each worker holds its prefetched batches, plus the samples of the batch it is collating",
                "docs.pytorch.org/docs/stable/data.html, prefetch_factor",
            ),
            Self::PinnedBatches => (
                "pinned batches",
                "a page-locked copy of each waiting batch, every tensor rounded up to a power of two",
                "torch/utils/data/_utils/pin_memory.py; PowerOf2Ceil in ATen/core/CachingHostAllocator.h",
            ),
            Self::DataSet => (
                "data set",
                "once per process; on Linux workers share its pages until a write copies them (changing a reference count \
                 is one), on Windows each has a copy",
                "pytorch/pytorch#13246; docs.pytorch.org/docs/stable/data.html, platform-specific behaviors",
            ),
            Self::PinnedStates => (
                "pinned weights and gradients",
                "offloaded tensors in page-locked memory, every block rounded up to a power of two",
                "deepspeed runtime/zero/stage_1_and_2.py and stage3.py; torch/distributed/fsdp/_fully_shard/_fsdp_param.py; \
                 PowerOf2Ceil in ATen/core/CachingHostAllocator.h",
            ),
            Self::SwappedBlocks => (
                "swapped blocks",
                "frozen weights of the blocks that wait for their turn on the GPU",
                "musubi_tuner/modules/custom_offloading_utils.py of kohya-ss/musubi-tuner",
            ),
            Self::OptimizerStates => (
                "optimizer states",
                "states of paged optimizers, or of an optimizer that steps on the host",
                "bitsandbytes optim/optimizer.py; torchao optim/cpu_offload.py; \
                 deepspeed.readthedocs.io/en/latest/memory.html",
            ),
            Self::Activations => (
                "activations",
                "tensors that a forward pass saves for backward",
                "torch.autograd.graph.save_on_cpu",
            ),
            Self::Average => (
                "moving average",
                "one copy of the weights per process",
                "timm utils/model_ema.py (device=\"cpu\")",
            ),
            Self::Gathering => (
                "gathering a checkpoint",
                "the full weights, on the first machine only; with the optimizer states if these are gathered too",
                "torch/distributed/checkpoint/state_dict.py (full_state_dict, cpu_offload); \
                 stage3_gather_16bit_weights_on_model_save of DeepSpeed",
            ),
            Self::Checkpoint => (
                "reading a checkpoint",
                "the whole file, once per process, when the run is resumed; writing needs one tensor at a time",
                "transformers Trainer._load_from_checkpoint; torch/serialization.py, _save",
            ),
        }
    }
}
