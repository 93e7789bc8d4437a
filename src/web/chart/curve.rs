//! Memory against one setting.

use plotters::prelude::*;

use super::paper::Paper;
use super::timeline::{LEFT, RIGHT};
use super::{Role, dressed, mark};
use crate::units::{Bytes, UnitStyle};
use crate::web::sweep::Curve;

/// The drawing as SVG, or nothing where there is no curve to draw.
pub fn curve(curve: &Curve, units: UnitStyle, size: (u32, u32)) -> Option<String> {
    let mut svg = String::new();
    draw(curve, units, size, &mut svg)?;
    Some(dressed(svg))
}

fn draw(curve: &Curve, units: UnitStyle, size: (u32, u32), svg: &mut String) -> Option<()> {
    let last = curve.points.last()?.0 as f64;
    let (scale, _) = units.scale(curve.top());
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let top = (height(curve.top()) * 1.08).max(1e-9);
    let area = Paper::new(svg, size).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin_top(12)
        .margin_right(RIGHT + 14)
        .margin_bottom(4)
        .y_label_area_size(LEFT)
        .x_label_area_size(24)
        .build_cartesian_2d(0.0..last, 0.0..top)
        .ok()?;
    let label = || ("monospace", 14).into_font().color(&Role::Soft.colour());
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(7)
        .y_labels(5)
        .y_max_light_lines(0)
        .bold_line_style(Role::Grid.colour())
        .axis_style(Role::Axis.colour())
        .x_label_style(label())
        .y_label_style(label())
        .x_label_formatter(&|value| mark(*value))
        .y_label_formatter(&|value| mark(*value))
        .draw()
        .ok()?;
    let low = curve
        .points
        .iter()
        .map(|(x, band)| (*x as f64, height(band.low)));
    let high = curve
        .points
        .iter()
        .map(|(x, band)| (*x as f64, height(band.high)));
    let range: Vec<_> = high.chain(low.rev()).collect();
    chart
        .draw_series([Polygon::new(range, Role::Main.colour().filled())])
        .ok()?;
    let line = curve
        .points
        .iter()
        .map(|(x, band)| (*x as f64, height(band.expected)));
    let line = LineSeries::new(line, Role::Main.colour().stroke_width(2));
    chart.draw_series(line).ok()?;
    if let Some(usable) = curve.usable.map(height).filter(|it| *it <= top) {
        let limit = PathElement::new(
            [(0.0, usable), (last, usable)],
            Role::Limit.colour().stroke_width(2),
        );
        chart.draw_series([limit]).ok()?;
    }
    let here = curve.points.iter().find(|(value, _)| *value == curve.now);
    if let Some((value, band)) = here {
        let at = (*value as f64, height(band.expected));
        let dot = Circle::new(at, 4, Role::Peak.colour().filled());
        chart.draw_series([dot]).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Band;

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
            largest: None,
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
