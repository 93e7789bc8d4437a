//! The result of a simulated run.

use crate::tape::Trace;

/// The result of a simulated run.
#[derive(Debug)]
pub struct Run {
    /// The recorded events, kernels and tensors.
    pub trace: Trace,
    /// Parameters of the model on this rank, counted before FSDP or ZeRO shards them.
    pub parameters: u64,
    /// Those of `parameters` that are trained.
    pub trainable: u64,
    /// Bytes of the optimizer's states and of what else it keeps in the host's memory.
    pub host_states: u64,
    /// Frozen weights of blocks that wait on the host.
    pub host_weights: u64,
    /// Bytes of the host's memory that a wrapper keeps on each rank in pages that stay in place.
    pub pinned: u64,
    /// Bytes of the weights, and of those that are trained.
    pub bytes: u64,
    /// Bytes of the trained weights alone, as this rank holds them.
    pub trainable_bytes: u64,
    /// Over how many GPUs the matrices are split: 1 where the network has no plan for that.
    pub tensor_parallel: u64,
    /// Over how many GPUs sequences are split: 1 where the network's attention does not reach over them.
    pub context_parallel: u64,
    /// Over how many GPUs the layers are split: 1 where the network's layers cannot be, or not in that order.
    pub pipeline_parallel: u32,
    /// Whether equal layers are all that its stages are cut from, of whatever one of them does.
    pub like_layers: bool,
    /// Over how many GPUs the experts of a layer are split: 1 where it has none, or not so.
    pub expert_parallel: u64,
}
