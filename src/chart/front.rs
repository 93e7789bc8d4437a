//! Memory against the time of a step, for the runs of a search.

use super::Role;
use super::plot::{Mark, Plot};
use headroom_base::units::{Bytes, UnitStyle};

/// The drawing as SVG, or nothing where there is nothing to draw: each run a dot, the proposed one marked.
pub fn front(
    points: &[(Bytes, f64, bool)],
    usable: Option<Bytes>,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    let slowest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let top = most.max(
        usable
            .filter(|usable| usable.get() / 3 < most.get())
            .unwrap_or_default(),
    );
    let (scale, _) = units.scale(top);
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let end = (slowest * 1.08, height(top) * 1.08);
    let mut marks = Vec::new();
    if let Some(usable) = usable.map(height).filter(|usable| *usable <= end.1) {
        marks.push(Mark::Line(
            vec![(0.0, usable), (end.0, usable)],
            Role::Limit,
            2,
        ));
    }
    let dot = |(bytes, seconds, best): &(Bytes, f64, bool)| {
        let role = if *best { Role::Peak } else { Role::Ghost };
        Mark::Dot((*seconds, height(*bytes)), role)
    };
    marks.extend(points.iter().map(dot));
    Plot {
        size,
        end,
        numbers: true,
        rows: None,
        marks,
    }
    .svg()
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
