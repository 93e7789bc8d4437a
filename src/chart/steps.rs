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
    marks.extend(axis.limit(last));
    axis.svg(last, marks, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_measures_are_lines_and_the_limit_if_near() {
        let points =
            [1.0, 2.0].map(|at| [(Bytes::gib(at), at, false), (Bytes::gib(3.0), at, true)]);
        let draw = |usable: f64| {
            let usable = Some(Bytes::gib(usable));
            steps(points.as_flattened(), usable, UnitStyle::Binary, (640, 240)).unwrap()
        };
        assert!(draw(4.0).contains("line-limit") && !draw(80.0).contains("line-limit"));
        assert!(draw(4.0).contains("line-main") && draw(4.0).contains("line-soft"));
        assert_eq!(steps(&[], None, UnitStyle::Binary, (640, 240)), None);
    }
}
