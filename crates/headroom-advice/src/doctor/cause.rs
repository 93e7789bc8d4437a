//! The causes a failure can have.

use serde::Serialize;

/// Why memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The run needs more memory than the GPU has.
    Capacity,
    /// One batch was larger than the ones before.
    Outlier,
    /// Something is kept from step to step.
    Leak,
    /// Enough memory is free, but not contiguous.
    Fragmentation,
    /// An evaluation or a generation needs more than training steps do.
    Evaluation,
    /// A checkpoint is written or read on the GPU.
    Checkpoint,
    /// Something else started at this step: unfreezing, a new loss, a moving average, longer sequences.
    Schedule,
    /// The optimizer allocates its states in its first step.
    OptimizerStep,
    /// A tensor quadratic in the sequence length or in the pixels.
    Attention,
    /// The logits over the vocabulary, and the loss of them.
    #[serde(rename = "logits-and-loss")]
    Logits,
    OtherProcess,
    /// The program runs on the wrong GPU.
    WrongDevice,
    /// The host's memory is full, not the GPU's.
    HostMemory,
    /// The shared memory in which data loader workers pass batches is full.
    SharedMemory,
    /// A driver or a library is at fault.
    LibraryBug,
    /// Not PyTorch running out of memory: another framework, an index out of range, an implausible size.
    NotOutOfMemory,
    Unknown,
}

impl Cause {
    pub const ALL: [Self; 17] = [
        Self::Capacity,
        Self::Outlier,
        Self::Leak,
        Self::Fragmentation,
        Self::Evaluation,
        Self::Checkpoint,
        Self::Schedule,
        Self::OptimizerStep,
        Self::Attention,
        Self::Logits,
        Self::OtherProcess,
        Self::WrongDevice,
        Self::HostMemory,
        Self::SharedMemory,
        Self::LibraryBug,
        Self::NotOutOfMemory,
        Self::Unknown,
    ];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Outlier => "outlier",
            Self::Leak => "leak",
            Self::Fragmentation => "fragmentation",
            Self::Evaluation => "evaluation",
            Self::Checkpoint => "checkpoint",
            Self::Schedule => "schedule",
            Self::OptimizerStep => "optimizer-step",
            Self::Attention => "attention",
            Self::Logits => "logits-and-loss",
            Self::OtherProcess => "other-process",
            Self::WrongDevice => "wrong-device",
            Self::HostMemory => "host-memory",
            Self::SharedMemory => "shared-memory",
            Self::LibraryBug => "library-bug",
            Self::NotOutOfMemory => "not-out-of-memory",
            Self::Unknown => "unknown",
        }
    }
}
