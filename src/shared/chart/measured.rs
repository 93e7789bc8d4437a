//! Measured peaks by step, against the predicted one.

use super::Role;
use super::plot::{Mark, MemoryAxis};
use headroom_base::units::{Bytes, UnitStyle};

/// The chart as SVG, or empty without measurements.
pub fn measured(
    steps: &[(f64, Bytes)],
    predicted: Bytes,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = steps.iter().map(|step| step.1).max()?.max(predicted);
    let last = steps.iter().map(|step| step.0).fold(1.0, f64::max);
    let axis = MemoryAxis::new(most, None, units);
    let line = steps
        .iter()
        .map(|(step, bytes)| (*step, axis.height(*bytes)))
        .collect();
    let at = axis.height(predicted);
    let marks = vec![
        Mark::Line(vec![(0.0, at), (last, at)], Role::Ghost, 2),
        Mark::Line(line, Role::Main, 2),
    ];
    axis.svg(last, marks, size)
}
