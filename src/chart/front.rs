//! Memory against the time of a step, for the runs of a search.

use super::Role;
use super::plot::{Mark, MemoryAxis};
use headroom_base::units::{Bytes, UnitStyle};

/// The chart as SVG, or empty without runs: each run is a dot, the proposed one is marked.
pub fn front(
    points: &[(Bytes, f64, bool)],
    usable: Option<Bytes>,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    let slowest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let axis = MemoryAxis::new(most, usable, units);
    let across = slowest * 1.08;
    let dot = |(bytes, seconds, best): &(Bytes, f64, bool)| {
        let role = if *best { Role::Peak } else { Role::Ghost };
        Mark::Dot((*seconds, axis.height(*bytes)), role)
    };
    let marks = axis.limit(across).into_iter();
    axis.svg(across, marks.chain(points.iter().map(dot)).collect(), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_a_dot_and_one_is_marked() {
        let points: Vec<_> = (1..=5)
            .map(|at| (Bytes::gib(f64::from(at)), 6.0 - f64::from(at), at == 5))
            .collect();
        let svg = front(
            &points,
            Some(Bytes::gib(6.0)),
            UnitStyle::Binary,
            (640, 240),
        )
        .unwrap();
        assert_eq!(svg.matches("fill-ghost").count(), 4);
        assert_eq!(svg.matches("fill-peak").count(), 1);
        assert!(svg.contains("line-limit"));
        assert_eq!(front(&[], None, UnitStyle::Binary, (640, 240)), None);
    }
}
