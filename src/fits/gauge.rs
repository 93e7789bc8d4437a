//! The gauge: everything on the device, to scale within the GPU's memory, with the free space.

use leptos::ev::PointerEvent;
use leptos::prelude::*;

use crate::shared::chart::labels::{self, Anchor, Label};
use crate::shared::colours::CATEGORIES;
use crate::shared::session::Session;
use crate::shared::tone::Tone;
use crate::shared::{browser, chart};
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{Category, Estimate, Part};

/// One part of the device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Tensor(Category),
    /// Reserved by the allocator but not allocated.
    Cached,
    /// Memory outside the allocator.
    Context,
}

impl Piece {
    /// Its class name, its label, and its explanation.
    pub const fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Tensor(category) => text::category(category),
            Self::Cached => text::CACHED,
            Self::Context => text::CONTEXT,
        }
    }
}

/// The parts of device memory at the peak, in drawing order.
pub fn pieces(estimate: &Estimate) -> Vec<(Piece, Bytes)> {
    let cached = estimate.reserved.expected - estimate.allocated.expected;
    let context = estimate.device.expected - estimate.reserved.expected;
    pieces_of(&estimate.breakdown, cached, context)
}

/// The same for the parts only.
pub fn pieces_of(
    breakdown: &[Part<Category>],
    cached: Bytes,
    context: Bytes,
) -> Vec<(Piece, Bytes)> {
    let of = |category: Category| {
        let same = breakdown.iter().filter(|part| part.what == category);
        (Piece::Tensor(category), same.map(|part| part.bytes).sum())
    };
    CATEGORIES
        .into_iter()
        .map(of)
        .chain([(Piece::Cached, cached), (Piece::Context, context)])
        .filter(|(_, bytes)| *bytes > Bytes::ZERO)
        .collect()
}

/// The layout, in percent of the drawing's width.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    pub tone: Tone,
    pub segments: Vec<Segment>,
    pub expected: f64,
    pub low: f64,
    pub high: f64,
    /// The GPU's usable memory, and its label.
    pub limit: Option<(f64, String)>,
    /// The free or missing memory, and its label.
    pub margin: Option<(f64, f64, String)>,
    pub ticks: Vec<(f64, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub piece: Piece,
    pub start: f64,
    pub width: f64,
}

impl Gauge {
    pub fn of(estimate: &Estimate, units: UnitStyle) -> Self {
        let device = estimate.device;
        let longest = device.high.max(estimate.usable.unwrap_or_default());
        let whole = (longest.get() as f64 * 1.02).max(1.0);
        let at = |bytes: Bytes| bytes.get() as f64 / whole * 100.0;
        let mut start = Bytes::ZERO;
        let segments = pieces(estimate)
            .into_iter()
            .map(|(piece, bytes)| {
                let segment = Segment {
                    piece,
                    start: at(start),
                    width: at(bytes),
                };
                start += bytes;
                segment
            })
            .collect();
        let margin = estimate.usable.map(|usable| {
            let (low, high) = (device.expected.min(usable), device.expected.max(usable));
            // In the verdict's unit.
            let (_, unit) = units.scale(usable);
            let name = format!("{} {unit}", (high - low).show_in_unit_of(usable, units));
            let what = if usable >= device.expected {
                "spare"
            } else {
                "over"
            };
            (at(low), at(high), format!("{name} {what}"))
        });
        Self {
            tone: Tone::of(estimate),
            segments,
            expected: at(device.expected),
            low: at(device.low),
            high: at(device.high),
            limit: estimate
                .usable
                .map(|usable| (at(usable), format!("{} usable", usable.show(units)))),
            margin,
            ticks: ticks(longest, units)
                .into_iter()
                .map(|(bytes, name)| (bytes / whole * 100.0, name))
                .collect(),
        }
    }
}

/// Round tick marks up to a quantity: powers of two for binary units, 1-2-5 for decimal ones.
fn ticks(longest: Bytes, units: UnitStyle) -> Vec<(f64, String)> {
    const MOST: f64 = 8.0;
    let (size, name) = units.scale(longest);
    let steps: &[f64] = match units {
        UnitStyle::Binary => &[0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0],
        UnitStyle::Decimal => &[0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0],
    };
    let length = longest.get() as f64 / size;
    let enough = |step: &&f64| length / **step <= MOST;
    let step = steps.iter().find(enough).copied().unwrap_or(256.0);
    let mut marks = Vec::new();
    let mut mark = 0.0;
    while mark <= length {
        let label = if mark == 0.0 {
            format!("0 {name}")
        } else {
            mark.to_string()
        };
        marks.push((mark * size, label));
        mark += step;
    }
    marks
}

/// The font size, in pixels.
const TYPE: f64 = 11.0;

impl Gauge {
    /// The drawing's content: positions are in percent, so that it fits any width; `width` is the approximate width in
    /// pixels, for the labels.
    pub fn svg(&self, width: f64) -> String {
        let mut svg = String::new();
        if let Some((at, _)) = &self.limit {
            svg.push_str(&format!(
                "<rect class=\"bed\" y=\"26\" width=\"{at:.3}%\" height=\"44\"/>\
                 <line class=\"limit\" x1=\"{at:.3}%\" x2=\"{at:.3}%\" y1=\"18\" y2=\"78\"/>"
            ));
        }
        for Segment {
            piece,
            start,
            width,
        } in &self.segments
        {
            let (id, label, _) = piece.describe();
            svg.push_str(&format!(
                "<rect class=\"segment part-{id}\" data-part=\"{id}\" x=\"{start:.3}%\" width=\"{width:.3}%\" y=\"26\" \
                 height=\"44\"><title>{label}</title></rect>"
            ));
        }
        svg.push_str(&self.names(width));
        let (low, high) = (self.low, self.high);
        for (from, to, top, bottom) in [
            (low, high, 76, 76),
            (low, low, 73, 80),
            (high, high, 73, 80),
        ] {
            svg.push_str(&format!(
                "<line class=\"band\" x1=\"{from:.3}%\" x2=\"{to:.3}%\" y1=\"{top}\" y2=\"{bottom}\"/>"
            ));
        }
        svg.push_str("<line class=\"edge\" x1=\"0\" x2=\"100%\" y1=\"86\" y2=\"86\"/>");
        for (at, _) in &self.ticks {
            svg.push_str(&format!(
                "<line class=\"tick\" x1=\"{at:.3}%\" x2=\"{at:.3}%\" y1=\"86\" y2=\"92\"/>"
            ));
        }
        let ticks = self.ticks.iter().map(|(at, name)| Label {
            text: name.clone(),
            at: at / 100.0 * width,
            anchor: if *at == 0.0 {
                Anchor::Start
            } else {
                Anchor::Middle
            },
        });
        let ticks: Vec<Label> = ticks.collect();
        for (label, left) in ticks.iter().zip(labels::row(&ticks, TYPE, 0.0, width)) {
            if let Some(left) = left {
                let at = left / width * 100.0;
                svg.push_str(&format!(
                    "<text x=\"{at:.3}%\" y=\"106\">{}</text>",
                    label.text
                ));
            }
        }
        svg
    }

    /// The labels of the limit and of the free or missing memory.
    fn names(&self, width: f64) -> String {
        let mut svg = String::new();
        let mut row: Vec<(Label, &str)> = Vec::new();
        let label = |text: &String, at: f64, anchor| Label {
            text: text.clone(),
            at: at / 100.0 * width,
            anchor,
        };
        if let Some((from, to, name)) = &self.margin {
            let room = (to - from) / 100.0 * width;
            if self.tone == Tone::Over {
                svg.push_str(&format!(
                    "<rect x=\"{from:.3}%\" width=\"{:.3}%\" y=\"26\" height=\"44\" fill=\"url(#hatch)\"/>",
                    to - from
                ));
                row.push((label(name, *to, Anchor::End), "spare"));
            } else if labels::width(name, TYPE) + 16.0 < room {
                let middle = f64::midpoint(*from, *to);
                svg.push_str(&format!(
                    "<text class=\"spare\" x=\"{middle:.3}%\" y=\"52\" text-anchor=\"middle\">{name}</text>"
                ));
            } else {
                // A label wider than its space would overlap the bar.
                row.push((label(name, 0.0, Anchor::Start), "spare"));
            }
        }
        if let Some((at, name)) = &self.limit {
            row.insert(0, (label(name, *at, Anchor::End), "limit-name"));
        }
        let wanted: Vec<Label> = row.iter().map(|(label, _)| label.clone()).collect();
        for ((label, class), left) in row.iter().zip(labels::row(&wanted, TYPE, 0.0, width)) {
            if let Some(left) = left {
                let at = left / width * 100.0;
                svg.push_str(&format!(
                    "<text class=\"{class}\" x=\"{at:.3}%\" y=\"11\">{}</text>",
                    label.text
                ));
            }
        }
        svg
    }
}

/// The part under the pointer, in the bar or in the table of parts: a context of the page.
#[derive(Clone, Copy, Debug)]
pub struct Pointed(pub RwSignal<&'static str>);

/// The drawing.
#[component]
pub fn Meter() -> impl IntoView {
    let session = Session::current();
    let Pointed(pointed) = expect_context();
    let size = chart::current_size();
    let read = move |read: &dyn Fn(&Estimate) -> String| {
        session
            .estimate
            .with(|estimate| estimate.as_deref().map(read))
            .unwrap_or_default()
    };
    let tone = move || read(&|estimate| Tone::of(estimate).id().into());
    let drawing = move || {
        let (units, width) = (session.units.get(), f64::from(size.get().0));
        read(&|estimate| Gauge::of(estimate, units).svg(width))
    };
    let point = move |event: PointerEvent| {
        let id = browser::attribute_under(&event, "data-part");
        let known = session.estimate.with_untracked(|estimate| {
            let all = estimate.as_deref().map(pieces).unwrap_or_default();
            let named = all.into_iter().map(|(piece, _)| piece.describe().0);
            named.into_iter().find(|name| *name == id)
        });
        pointed.set(known.unwrap_or_default());
    };
    // The table of parts has the same numbers for screen readers.
    view! {
        <figure class="gauge" data-tone=tone data-pointed=move || pointed.get()>
            <svg
                aria-hidden="true"
                on:pointermove=point
                on:pointerleave=move |_| pointed.set("")
            >
                <defs>
                    <pattern
                        id="hatch"
                        width="6"
                        height="6"
                        patternUnits="userSpaceOnUse"
                        patternTransform="rotate(45)"
                    >
                        <rect width="2" height="6" class="too-much"></rect>
                    </pattern>
                </defs>
                <g inner_html=drawing></g>
            </svg>
        </figure>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;

    #[test]
    fn the_parts_add_up_to_device_memory() {
        let estimate = sample::estimate();
        let all = pieces(&estimate);
        let sum: Bytes = all.iter().map(|(_, bytes)| *bytes).sum();
        assert_eq!(sum, estimate.device.expected);
        let names: Vec<_> = all.iter().map(|(piece, _)| piece.describe().0).collect();
        assert_eq!(names, ["parameters", "activations", "cached", "context"]);
    }

    #[test]
    fn segments_are_contiguous_and_followed_by_the_margin() {
        let gauge = Gauge::of(&sample::estimate(), UnitStyle::Binary);
        let mut end = 0.0;
        for segment in &gauge.segments {
            assert!((segment.start - end).abs() < 1e-9);
            end = segment.start + segment.width;
        }
        assert!((end - gauge.expected).abs() < 1e-9);
        let (from, to, name) = gauge.margin.unwrap();
        assert!((from - gauge.expected).abs() < 1e-9 && to > from);
        assert_eq!(name, "10.0 GiB spare");
        assert_eq!(gauge.limit.unwrap().1, "20.0 GiB usable");
    }

    #[test]
    fn a_run_that_does_not_fit_exceeds_the_limit() {
        let mut estimate = sample::estimate();
        estimate.usable = Some(Bytes::gib(8.0));
        let gauge = Gauge::of(&estimate, UnitStyle::Binary);
        assert_eq!(gauge.tone, Tone::Over);
        assert!(gauge.limit.unwrap().0 < gauge.expected && gauge.high <= 100.0);
        assert_eq!(gauge.margin.unwrap().2, "2.00 GiB over");
    }

    #[test]
    fn marks_are_round_and_few() {
        #[track_caller]
        fn check(longest: Bytes, units: UnitStyle, expected: &[&str]) {
            let names: Vec<_> = ticks(longest, units)
                .into_iter()
                .map(|tick| tick.1)
                .collect();
            assert_eq!(names, expected);
        }
        let all = ["0 GiB", "4", "8", "12", "16", "20"];
        check(Bytes::gib(23.6), UnitStyle::Binary, &all);
        let all = ["0 GB", "5", "10", "15", "20", "25"];
        check(Bytes::gib(23.6), UnitStyle::Decimal, &all);
        check(Bytes::ZERO, UnitStyle::Binary, &["0 B"]);
        assert!(ticks(Bytes::MAX, UnitStyle::Binary).len() < 66);
    }
}
