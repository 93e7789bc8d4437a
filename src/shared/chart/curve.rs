//! Memory against one setting.

use super::Role;
use super::plot::{Mark, MemoryAxis};
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Band;

/// The unit of a curve's memory axis.
pub fn curve_unit(points: &[(u64, Band)], usable: Option<Bytes>, units: UnitStyle) -> &'static str {
    axis(points, usable, units).unit(units)
}

/// The chart as SVG, or empty without points; the point at `now` is marked.
pub fn curve(
    points: &[(u64, Band)],
    now: u64,
    usable: Option<Bytes>,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let last = points.last()?.0 as f64;
    let axis = axis(points, usable, units);
    let along = |end: fn(&Band) -> Bytes| -> Vec<(f64, f64)> {
        let place = |(x, band): &(u64, Band)| (*x as f64, axis.height(end(band)));
        points.iter().map(place).collect()
    };
    let mut range = along(|band| band.high);
    range.extend(along(|band| band.low).into_iter().rev());
    let expected = along(|band| band.expected);
    let mut marks = vec![Mark::Area(range, Role::Main)];
    marks.extend(axis.limit(last, units));
    let here = points.iter().position(|(value, _)| *value == now);
    let here = here.and_then(|at| expected.get(at)).copied();
    marks.push(Mark::Line(expected, Role::Main, 2));
    marks.extend(here.map(|place| Mark::Dot(place, Role::Peak)));
    axis.svg(last, marks, size)
}

fn axis(points: &[(u64, Band)], usable: Option<Bytes>, units: UnitStyle) -> MemoryAxis {
    let highest = points.iter().map(|(_, band)| band.high).max();
    MemoryAxis::new(highest.unwrap_or_default(), usable, units)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (640, 240);

    fn points() -> Vec<(u64, Band)> {
        let band = |gib: f64| Band {
            low: Bytes::gib(gib * 0.9),
            expected: Bytes::gib(gib),
            high: Bytes::gib(gib * 1.1),
        };
        (1..=8).map(|x| (x, band(x as f64))).collect()
    }

    #[test]
    fn the_limit_is_drawn_if_near() {
        let check = |usable: Option<f64>, drawn| {
            let usable = usable.map(Bytes::gib);
            let svg = curve(&points(), 4, usable, UnitStyle::Binary, SIZE).unwrap();
            assert_eq!(svg.contains("line-limit"), drawn);
            assert!(svg.contains("fill-peak") && svg.contains("line-main"));
            assert!(!svg.contains('#') && !svg.contains("style="));
        };
        check(Some(6.0), true);
        check(Some(20.0), true);
        check(Some(80.0), false);
        check(None, false);
    }
}
