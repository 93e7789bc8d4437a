//! What an estimate says.

use serde::Serialize;

use super::{Disk, Doubt, Host};
use crate::tape::{Category, Phase};
use headroom_base::units::{Bytes, Flops};

/// A quantity with its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    pub low: Bytes,
    pub expected: Bytes,
    pub high: Bytes,
}

impl Band {
    /// The band, raised where it lies below another.
    pub fn at_least(self, floor: Self) -> Self {
        Self {
            low: self.low.max(floor.low),
            expected: self.expected.max(floor.expected),
            high: self.high.max(floor.high),
        }
    }
}

/// How what is needed compares with what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Even the upper end of the range fits.
    Fits,
    /// The range reaches over the edge, but what is expected fits.
    Probably,
    /// What is expected does not fit, but the lower end of the range does.
    ProbablyNot,
    /// Not even the lower end of the range fits.
    No,
}

impl Fit {
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

    pub const fn words(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Probably => "probably fits",
            Self::ProbablyNot => "probably does not fit",
            Self::No => "does not fit",
        }
    }
}

/// One line of a breakdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part<K> {
    pub what: K,
    pub bytes: Bytes,
}

/// One instant of the step, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instant {
    pub phase: Phase,
    /// Allocated at this instant.
    pub bytes: Bytes,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// `torch.cuda.max_memory_allocated`.
    pub allocated: Band,
    /// `torch.cuda.max_memory_reserved`.
    pub reserved: Band,
    /// What `nvidia-smi` shows for the process: reserved, CUDA context, libraries.
    pub device: Band,
    /// The phase whose peak is the step's peak.
    pub phase: Phase,
    pub phases: Vec<Part<Phase>>,
    /// What is alive at the peak; sums to `allocated.expected`.
    pub breakdown: Vec<Part<Category>>,
    /// The same bytes by module path.
    pub modules: Vec<Part<String>>,
    /// Allocated bytes over the step, thinned to a few hundred instants that keep every phase's peak.
    pub timeline: Vec<Instant>,
    /// Allocated between steps.
    #[serde(rename = "static")]
    pub between_steps: Bytes,
    pub forward_end: Bytes,
    pub parameters: u64,
    pub trainable: u64,
    pub flops: Flops,
    /// The memory of one machine.
    pub host: Host,
    /// What its checkpoints take.
    pub disk: Disk,
    /// What the driver leaves to programs on the chosen GPU.
    pub usable: Option<Bytes>,
    /// What evaluations leave on the GPU until the run ends, beside all the above.
    pub growth: Bytes,
    /// The epoch in which that fills the card, where it does before the end or the end is not known.
    pub full_in_epoch: Option<u64>,
    /// Whether `device.expected` and what grows fit in `usable`; `None` where no GPU was named.
    pub fits: Option<bool>,
    /// What the range of `device` is made of, the widest first.
    pub doubts: Vec<Doubt>,
    /// What this estimate leaves out, in words.
    pub not_modelled: Vec<String>,
}

impl Estimate {
    /// How it stands to the card; `None` where none was named.
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
