//! The colour of an answer.

use headroom_core::estimate::{Estimate, Fit};

/// How well a run fits, for the colours of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Even the high end of the range fits.
    Fits,
    /// The range includes the GPU's usable memory.
    Close,
    /// Even the low end does not fit.
    Over,
    /// No GPU memory to compare with.
    Open,
}

impl Tone {
    pub fn of(estimate: &Estimate) -> Self {
        estimate.fit().map_or(Self::Open, Self::of_fit)
    }

    pub const fn of_fit(fit: Fit) -> Self {
        match fit {
            Fit::Fits => Self::Fits,
            Fit::Probably | Fit::ProbablyNot => Self::Close,
            Fit::No => Self::Over,
        }
    }

    pub const fn id(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Close => "close",
            Self::Over => "over",
            Self::Open => "open",
        }
    }
}
