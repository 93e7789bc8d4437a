//! Sounds of a sample, as rows of speech and of models that see and hear name them.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sound {
    seconds: f64,
    pub(super) mel_frames: u64,
    /// Windows of so many frames each, where a sample has several.
    windows: u64,
}

/// Mel frames of a second.
const FRAMES: f64 = 100.0;

impl Sound {
    /// Frames of sound in a sample: those of the batch, or the fewer that are no padding; zero without sound.
    pub(super) fn frames(&self) -> u64 {
        let padded = self.mel_frames.saturating_mul(self.windows.max(1));
        let heard = (self.seconds * FRAMES).round() as u64;
        match (padded, heard) {
            (0, heard) => heard,
            (padded, 0) => padded,
            (padded, _) if self.windows > 1 => padded,
            (padded, heard) => padded.min(heard),
        }
    }
}
