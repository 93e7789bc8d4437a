//! Allocated and reserved memory over many steps.

use super::Role;
use super::plot::{Mark, MemoryAxis};
use headroom_base::units::{Bytes, UnitStyle};

/// The chart as SVG, or empty without steps: points are bytes, step, and whether they are reserved.
pub fn steps(
    points: &[(Bytes, f64, bool)],
    usable: Option<Bytes>,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    let last = points.iter().map(|point| point.1).fold(1.0, f64::max);
    let axis = MemoryAxis::new(most, usable, units);
    let line = |reserved: bool| -> Vec<(f64, f64)> {
        let same = points.iter().filter(|point| point.2 == reserved);
        same.map(|point| (point.1, axis.height(point.0))).collect()
    };
    let mut marks = vec![
        Mark::Line(line(false), Role::Soft, 2),
        Mark::Line(line(true), Role::Main, 2),
    ];
    marks.extend(axis.limit(last, units));
    axis.svg(last, marks, size)
}
