//! `Estimate`: the result of a prediction.

use serde::Serialize;

use super::figures::{Band, Instant, Part};
use super::{Disk, Doubt, Host};
use crate::tape::{Category, Phase};
use headroom_base::units::{Bytes, Flops};

/// How needed memory compares with usable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The upper end of the range fits.
    Fits,
    /// The expected value fits, the upper end does not.
    Probably,
    /// The expected value does not fit, the lower end does.
    ProbablyNot,
    /// The lower end of the range does not fit.
    No,
}

impl Fit {
    /// Compares the range of the needed memory with what is usable.
    pub fn of(need: Band, usable: Bytes) -> Self {
        if need.high <= usable {
            Self::Fits
        } else if need.expected <= usable {
            Self::Probably
        } else if need.low <= usable {
            Self::ProbablyNot
        } else {
            Self::No
        }
    }

    /// The verdict in words to be shown to the user.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Probably => "probably fits",
            Self::ProbablyNot => "probably does not fit",
            Self::No => "does not fit",
        }
    }
}

/// What a training step needs on one rank, and its machine's memory and disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// `torch.cuda.max_memory_allocated`.
    pub allocated: Band,
    /// `torch.cuda.max_memory_reserved`.
    pub reserved: Band,
    /// As `nvidia-smi` shows it for the process: reserved, CUDA context, libraries.
    pub device: Band,
    /// The phase whose peak is the step's peak.
    pub phase: Phase,
    /// The allocated peak of each phase that the last simulated step has.
    pub phases: Vec<Part<Phase>>,
    /// What is alive at the peak; sums to `allocated.expected`.
    pub breakdown: Vec<Part<Category>>,
    /// The same bytes by module path.
    pub modules: Vec<Part<String>>,
    /// Allocated bytes over the step, downsampled to a few hundred instants that keep every phase's peak.
    pub timeline: Vec<Instant>,
    /// Allocated between steps.
    #[serde(rename = "static")]
    pub between_steps: Bytes,
    /// Allocated when forward ends; of several passes, after the one with the highest peak.
    pub forward_end: Bytes,
    /// Parameters of the model on this rank, counted before FSDP or ZeRO shards them.
    pub parameters: u64,
    /// Those of `parameters` that are trained.
    pub trainable: u64,
    /// FLOPs of a step on one GPU, including recomputation.
    pub flops: Flops,
    /// The memory of one machine.
    pub host: Host,
    /// Disk space of its checkpoints.
    pub disk: Disk,
    /// Memory that the driver leaves to programs on the chosen GPU.
    pub usable: Option<Bytes>,
    /// What evaluations leave on the GPU by the end of the run, on top of the above.
    pub growth: Bytes,
    /// The epoch in which that fills the GPU, if it does so before the end or the end is unknown.
    pub full_in_epoch: Option<u64>,
    /// Whether `device.expected` plus `growth` fits in `usable`; `None` if the GPU's memory is unknown.
    pub fits: Option<bool>,
    /// The terms of `device`'s range, widest first.
    pub doubts: Vec<Doubt>,
    /// What this estimate leaves out.
    pub not_modelled: Vec<String>,
}

impl Estimate {
    /// Whether it fits the GPU; `None` if its memory is unknown.
    pub fn fit(&self) -> Option<Fit> {
        let Band {
            low,
            expected,
            high,
        } = self.device;
        let grown = Band {
            low: low + self.growth,
            expected: expected + self.growth,
            high: high + self.growth,
        };
        Some(Fit::of(grown, self.usable?))
    }
}
