//! One plot: axes and marks. Every chart goes through here, so that the drawing library is compiled in once.

use plotters::element::{DynElement, IntoDynElement};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::labels::{self, Anchor, Label};
use super::paper::Paper;
use super::{Role, dressed, mark};

/// The plot's edges inside the drawing, in its own units.
pub const LEFT: u32 = 44;
pub const RIGHT: u32 = 24;
const TOP: u32 = 26;
const BOTTOM: u32 = 10;
/// Room for numbers under the horizontal axis.
const NUMBERS: u32 = 22;

/// A place in the plot: right and up from its origin, in the axes' units.
pub type Place = (f64, f64);

/// One mark.
#[derive(Clone, Debug)]
pub enum Mark {
    /// A filled outline.
    Area(Vec<Place>, Role),
    Line(Vec<Place>, Role, u32),
    Dot(Place, Role),
    /// A word above the plot, from that place on, where there is room for it.
    Name(f64, String),
    /// A word around that place.
    Word(Place, String),
}

#[derive(Clone, Debug)]
pub struct Plot {
    pub size: (u32, u32),
    /// The axes' ends; both begin at nothing.
    pub end: Place,
    /// Whether the horizontal axis carries numbers.
    pub numbers: bool,
    /// How many rows stand in the place of the vertical axis's numbers, the first on top, each around a whole number.
    pub rows: Option<u32>,
    pub marks: Vec<Mark>,
}

impl Plot {
    /// The drawing as SVG; nothing where the numbers cannot be drawn.
    pub fn svg(self) -> Option<String> {
        let mut svg = String::new();
        self.draw(&mut svg)?;
        Some(dressed(svg))
    }

    fn draw(self, svg: &mut String) -> Option<()> {
        let (across, up) = self.end;
        let area = Paper::new(svg, self.size).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(TOP)
            .margin_right(RIGHT)
            .margin_bottom(BOTTOM)
            .y_label_area_size(LEFT)
            .x_label_area_size(if self.numbers { NUMBERS } else { 0 })
            .build_cartesian_2d(0.0..across.max(1e-9), 0.0..up.max(1e-9))
            .ok()?;
        let label = || ("monospace", 14).into_font().color(&Role::Soft.colour());
        let number = |value: &f64| mark(*value);
        let row = |value: &f64| match self.rows {
            None => mark(*value),
            Some(rows) if *value >= 1.0 && *value <= f64::from(rows) => {
                mark(f64::from(rows) + 1.0 - value)
            }
            Some(_) => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(if self.numbers { 7 } else { 0 })
            .y_labels(self.rows.map_or(5, |rows| rows.min(16) as usize + 2))
            .y_max_light_lines(0)
            .bold_line_style(Role::Grid.colour())
            .axis_style(Role::Axis.colour())
            .x_label_style(label())
            .y_label_style(label())
            .x_label_formatter(&number)
            .y_label_formatter(&row)
            .draw()
            .ok()?;
        let (width, height) = chart.plotting_area().dim_in_pixel();
        let across_pixel = across / f64::from(width.max(1));
        // Names stand a little above and to the right of their place.
        let above = up * (1.0 + 20.0 / f64::from(height.max(1)));
        let names = self.marks.iter().filter_map(|mark| match mark {
            Mark::Name(x, text) => Some(Label {
                text: text.clone(),
                at: x / across_pixel + 4.0,
                anchor: Anchor::Start,
            }),
            _ => None,
        });
        let names: Vec<Label> = names.collect();
        let mut places = labels::row(&names, 14.0, 0.0, f64::from(width + RIGHT)).into_iter();
        let marks: Vec<DynElement<'_, Paper<'_>, Place>> = self
            .marks
            .into_iter()
            .filter_map(|mark| {
                Some(match mark {
                    Mark::Area(outline, role) => {
                        Polygon::new(outline, role.colour().filled()).into_dyn()
                    }
                    Mark::Line(places, role, width) => {
                        PathElement::new(places, role.colour().stroke_width(width)).into_dyn()
                    }
                    Mark::Dot(place, role) => {
                        Circle::new(place, 4, role.colour().filled()).into_dyn()
                    }
                    Mark::Word(place, word) => {
                        let middle = Pos::new(HPos::Center, VPos::Center);
                        let style = ("monospace", 12).into_font().color(&Role::Peak.colour());
                        Text::new(word, place, style.pos(middle)).into_dyn()
                    }
                    Mark::Name(_, name) => {
                        let x = places.next()?? * across_pixel;
                        Text::new(name, (x, above), label()).into_dyn()
                    }
                })
            })
            .collect();
        chart.draw_series(marks).ok()?;
        Some(())
    }
}
