//! What is allocated and what is held, over many steps.

use super::Role;
use super::plot::{Mark, Plot};
use headroom_base::units::{Bytes, UnitStyle};

/// The drawing as SVG, or nothing where no steps are known: points are bytes, step, and whether they are held.
pub fn steps(
    points: &[(Bytes, f64, bool)],
    usable: Option<Bytes>,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    let last = points.iter().map(|point| point.1).fold(1.0, f64::max);
    // A card far above would press the steps flat.
    let near = usable.filter(|usable| usable.get() / 3 < most.get());
    let top = most.max(near.unwrap_or_default());
    let (scale, _) = units.scale(top);
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let line = |held: bool| -> Vec<(f64, f64)> {
        let same = points.iter().filter(|point| point.2 == held);
        same.map(|point| (point.1, height(point.0))).collect()
    };
    let mut marks = vec![
        Mark::Line(line(false), Role::Soft, 2),
        Mark::Line(line(true), Role::Main, 2),
    ];
    if let Some(near) = near.map(height) {
        marks.push(Mark::Line(vec![(0.0, near), (last, near)], Role::Limit, 2));
    }
    Plot {
        size,
        end: (last, height(top) * 1.08),
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
    fn both_measures_are_lines_and_the_card_where_it_is_near() {
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
