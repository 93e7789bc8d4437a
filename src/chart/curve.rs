//! Memory against one setting.

use super::Role;
use super::plot::{Mark, Plot};
use crate::sweep::Curve;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Band;

/// The drawing as SVG, or nothing where there is no curve to draw.
pub fn curve(curve: &Curve, units: UnitStyle, size: (u32, u32)) -> Option<String> {
    let last = curve.points.last()?.0 as f64;
    let (scale, _) = units.scale(curve.top());
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let top = height(curve.top()) * 1.08;
    let along = |end: fn(&Band) -> Bytes| -> Vec<(f64, f64)> {
        let place = |(x, band): &(u64, Band)| (*x as f64, height(end(band)));
        curve.points.iter().map(place).collect()
    };
    let mut range = along(|band| band.high);
    range.extend(along(|band| band.low).into_iter().rev());
    let expected = along(|band| band.expected);
    let mut marks = vec![Mark::Area(range, Role::Main)];
    if let Some(usable) = curve.usable.map(height).filter(|usable| *usable <= top) {
        marks.push(Mark::Line(
            vec![(0.0, usable), (last, usable)],
            Role::Limit,
            2,
        ));
    }
    let here = curve
        .points
        .iter()
        .position(|(value, _)| *value == curve.now);
    let here = here.and_then(|at| expected.get(at)).copied();
    marks.push(Mark::Line(expected, Role::Main, 2));
    marks.extend(here.map(|place| Mark::Dot(place, Role::Peak)));
    let end = (last, top);
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
    use crate::sweep::Largest;

    fn sample(usable: Option<f64>) -> Curve {
        let band = |gib: f64| Band {
            low: Bytes::gib(gib * 0.9),
            expected: Bytes::gib(gib),
            high: Bytes::gib(gib * 1.1),
        };
        Curve {
            points: (1..=8).map(|x| (x, band(x as f64))).collect(),
            now: 4,
            usable: usable.map(Bytes::gib),
            largest: Largest::NotYetKnown,
        }
    }

    #[test]
    fn the_card_is_drawn_where_it_is_near() {
        let check = |usable, drawn| {
            let svg = curve(&sample(usable), UnitStyle::Binary, (640, 240)).unwrap();
            assert_eq!(svg.contains("line-limit"), drawn);
            assert!(svg.contains("fill-peak") && svg.contains("line-main"));
            assert!(!svg.contains('#') && !svg.contains("style="));
        };
        check(Some(6.0), true);
        check(Some(20.0), true);
        check(Some(80.0), false);
        check(None, false);
    }

    #[test]
    fn no_points_are_no_drawing() {
        assert_eq!(
            curve(&Curve::default(), UnitStyle::Binary, (640, 240)),
            None
        );
    }
}
