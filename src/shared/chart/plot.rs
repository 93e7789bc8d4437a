//! One plot: axes and marks. All charts are drawn here, so that plotters' generics are instantiated once.

use plotters::element::{DynElement, IntoDynElement};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::labels::{self, Anchor, Label};
use super::paper::Paper;
use super::{Role, mark, with_classes};
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};

/// The plot's edges inside the drawing, in its coordinates.
pub const LEFT: u32 = 44;
pub const RIGHT: u32 = 24;
pub const TOP: u32 = 26;
pub const BOTTOM: u32 = 10;
/// Space for numbers below the horizontal axis.
pub const NUMBERS: u32 = 22;

/// A point in the plot, in the axes' units.
pub type Place = (f64, f64);

/// One mark.
#[derive(Clone, Debug)]
pub enum Mark {
    /// A filled outline.
    Area(Vec<Place>, Role),
    Line(Vec<Place>, Role, u32),
    Dot(Place, Role),
    /// A left-aligned label above the plot, if there is space for it.
    Name(f64, String),
    /// A centred label.
    Word(Place, String),
    /// A line across the plot up to this place, and its name above its end.
    Limit(Place, String),
}

#[derive(Clone, Debug)]
pub struct Plot {
    pub size: (u32, u32),
    /// The axes' ends; both begin at zero.
    pub end: Place,
    /// Whether the horizontal axis has numbers.
    pub numbers: bool,
    /// The number of rows that replace the vertical axis's numbers, the first at the top, each centred on an integer.
    pub rows: Option<u32>,
    pub marks: Vec<Mark>,
}

impl Plot {
    /// The chart as SVG; empty if the numbers cannot be drawn.
    pub fn svg(self) -> Option<String> {
        let mut svg = String::new();
        self.draw(&mut svg)?;
        Some(with_classes(svg))
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
        let (width, height_in_pixels) = chart.plotting_area().dim_in_pixel();
        let across_pixel = across / f64::from(width.max(1));
        // Labels are a little above and to the right of their point.
        let above = up * (1.0 + 20.0 / f64::from(height_in_pixels.max(1)));
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
        let named = self.marks.iter().filter_map(|mark| match mark {
            Mark::Limit((across, height), name) => {
                let end = Pos::new(HPos::Right, VPos::Bottom);
                let style = ("monospace", 12).into_font().color(&Role::Soft.colour());
                // Clear of the line.
                let above = height + up * 4.0 / f64::from(height_in_pixels.max(1));
                Some(Text::new(name.clone(), (*across, above), style.pos(end)).into_dyn())
            }
            _ => None,
        });
        let named: Vec<DynElement<'_, Paper<'_>, Place>> = named.collect();
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
                    Mark::Limit((across, height), _) => {
                        let line = vec![(0.0, height), (across, height)];
                        let style = Role::Limit.colour().stroke_width(2);
                        PathElement::new(line, style).into_dyn()
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
        chart.draw_series(marks.into_iter().chain(named)).ok()?;
        Some(())
    }
}

/// A vertical axis of memory that ends a little above the highest value and the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryAxis {
    scale: f64,
    top: Bytes,
    limit: Option<Bytes>,
    /// How much higher the axis ends than the highest value.
    room: f64,
}

impl MemoryAxis {
    /// The usable memory is the limit, unless a much larger GPU would flatten the chart.
    pub fn new(highest: Bytes, usable: Option<Bytes>, units: UnitStyle) -> Self {
        let limit = usable.filter(|usable| usable.get() / 3 < highest.get());
        let top = limit.map_or(highest, |limit| limit.max(highest));
        let (scale, _) = units.scale(top);
        Self {
            scale,
            top,
            limit,
            room: 1.08,
        }
    }

    /// The same with space for a row of names, which the limit's name does not meet.
    pub fn below_names(self) -> Self {
        Self { room: 1.2, ..self }
    }

    /// The unit of the axis.
    pub fn unit(&self, units: UnitStyle) -> &'static str {
        units.scale(self.top).1
    }

    pub fn height(&self, bytes: Bytes) -> f64 {
        bytes.get() as f64 / self.scale
    }

    /// The end of the axis.
    pub fn end(&self) -> f64 {
        self.height(self.top) * self.room
    }

    /// The limit as a line across the plot, with its name.
    pub fn limit(&self, across: f64, units: UnitStyle) -> Option<Mark> {
        let limit = self.limit?;
        let name = text::usable(&limit.show(units));
        Some(Mark::Limit((across, self.height(limit)), name))
    }

    /// The chart of marks against a horizontal axis with numbers.
    pub fn svg(&self, across: f64, marks: Vec<Mark>, size: (u32, u32)) -> Option<String> {
        let end = (across, self.end());
        Plot {
            size,
            end,
            numbers: true,
            rows: None,
            marks,
        }
        .svg()
    }
}
