//! The numbers of a run that are compared.

use headroom_base::units::Bytes;
use headroom_core::allocator::Settings;
use headroom_core::estimate::{Band, Peaks, Phase, UncertaintySources};
use headroom_core::training as step;

/// The number that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    #[default]
    Allocated,
    Reserved,
    Expandable,
    /// Allocated when the last forward ends.
    Forward,
    /// The peak of a phase of the last step.
    Phase(Phase),
    /// Allocated between steps.
    Static,
    /// Pinned host memory that offload holds.
    Pinned,
}

impl Metric {
    pub fn from_id(id: &str) -> Option<Self> {
        Some(match id {
            "allocated" => Self::Allocated,
            "reserved" => Self::Reserved,
            "expandable" => Self::Expandable,
            "forward" => Self::Forward,
            "forward-peak" => Self::Phase(Phase::Forward),
            "backward-peak" => Self::Phase(Phase::Backward),
            "optimizer-peak" => Self::Phase(Phase::Optimizer),
            "static" => Self::Static,
            "pinned" => Self::Pinned,
            _ => return None,
        })
    }
}

/// A metric of a predicted run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub bytes: u64,
    /// The predicted range, of allocated and reserved memory.
    pub band: Option<Band>,
}

/// Reads a metric of a run, with its range.
pub fn figure(
    run: &step::Run,
    metric: Metric,
    doubts: UncertaintySources,
) -> Result<Figure, String> {
    let settings = match metric {
        Metric::Expandable => Settings::expandable(),
        _ => Settings::default(),
    };
    let peaks = Peaks::replayed(&run.trace, &settings);
    let allocated = peaks.highest().map_or(0, |peak| peak.bytes);
    let [of_allocated, of_reserved] =
        doubts.bands(Bytes::new(allocated), Bytes::new(peaks.reserved));
    let band = match metric {
        Metric::Allocated => Some(of_allocated),
        Metric::Reserved | Metric::Expandable => Some(of_reserved),
        _ => None,
    };
    let predicted = match metric {
        Metric::Allocated => peaks.highest().map(|peak| peak.bytes),
        Metric::Forward => peaks
            .phases
            .iter()
            .rev()
            .find(|peak| peak.mark.phase == Phase::Forward)
            .map(|peak| peak.end),
        Metric::Phase(phase) => {
            let of_phase = peaks.phases.iter().filter(|peak| peak.mark.phase == phase);
            let last = of_phase.clone().map(|peak| peak.mark.step).max();
            of_phase
                .filter(|peak| Some(peak.mark.step) == last)
                .map(|peak| peak.bytes)
                .max()
        }
        Metric::Static => peaks.phases.last().map(|peak| peak.end),
        Metric::Pinned => Some(run.pinned).filter(|pinned| *pinned > 0),
        Metric::Reserved | Metric::Expandable => Some(peaks.reserved),
    };
    let bytes = predicted.ok_or_else(|| "nothing was run".to_string())?;
    Ok(Figure { bytes, band })
}
