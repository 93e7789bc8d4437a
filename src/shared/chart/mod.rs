//! Charts with axes, as SVG text without colours: every mark has a class that the style sheets colour.

mod curve;
mod figure;
mod front;
pub mod labels;
mod measured;
mod paper;
mod pipeline;
mod plot;
mod scrubber;
mod steps;
mod timeline;

pub use curve::{curve, curve_unit};
pub use figure::{Drawing, SavePicture};
pub use front::Front;
pub use measured::measured;
pub use pipeline::{pipeline, time_unit};
pub use scrubber::Scrubber;
pub use steps::steps;
pub use timeline::{
    TimelineData, cursor_at, instant_at, passes, peak, place_of, timeline, value_at,
};

use leptos::prelude::*;
use plotters::style::RGBColor;

use crate::shared::colours::{CATEGORIES, COLOURS as PART_COLOURS};
use crate::text;

/// The role of a mark. Plotters writes colours; each role has a unique one, which `with_classes` replaces by a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Axis,
    Grid,
    Soft,
    Main,
    Limit,
    Peak,
    Over,
    Ghost,
    Forward,
    Backward,
    Weights,
    /// A category of memory, by its index.
    Part(u8),
}

impl Role {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Axis, "axis"),
        (Self::Grid, "grid"),
        (Self::Soft, "soft"),
        (Self::Main, "main"),
        (Self::Limit, "limit"),
        (Self::Peak, "peak"),
        (Self::Over, "over"),
        (Self::Ghost, "ghost"),
        (Self::Forward, "forward"),
        (Self::Backward, "backward"),
        (Self::Weights, "weights"),
    ];

    const fn colour(self) -> RGBColor {
        match self {
            Self::Axis => RGBColor(0, 0, 1),
            Self::Grid => RGBColor(0, 0, 2),
            Self::Soft => RGBColor(0, 0, 3),
            Self::Main => RGBColor(0, 0, 4),
            Self::Limit => RGBColor(0, 0, 5),
            Self::Peak => RGBColor(0, 0, 6),
            Self::Over => RGBColor(0, 0, 7),
            Self::Ghost => RGBColor(0, 0, 8),
            Self::Forward => RGBColor(0, 0, 9),
            Self::Backward => RGBColor(0, 0, 10),
            Self::Weights => RGBColor(0, 0, 11),
            Self::Part(at) => RGBColor(0, 1, at),
        }
    }
}

/// Replaces the roles' colours by classes.
fn with_classes(mut svg: String) -> String {
    let code = |role: Role| {
        let RGBColor(r, g, b) = role.colour();
        format!("#{r:02X}{g:02X}{b:02X}")
    };
    for (at, category) in (0..).zip(CATEGORIES) {
        let fill = format!("fill=\"{}\"", code(Role::Part(at)));
        svg = svg.replace(
            &fill,
            &format!("class=\"part-{}\"", text::category(category).0),
        );
    }
    for (role, name) in Role::ALL {
        let code = code(role);
        svg = svg
            .replace(
                &format!("fill=\"{code}\""),
                &format!("class=\"fill-{name}\""),
            )
            .replace(
                &format!("stroke=\"{code}\""),
                &format!("class=\"line-{name}\""),
            );
    }
    svg
}

/// The current size of charts.
pub fn current_size() -> Signal<(u32, u32)> {
    let width = use_context::<Width>();
    Signal::derive(move || size(width.map_or(1280, |Width(width)| width.get())))
}

/// The window's rounded width, as a context of the page.
#[derive(Clone, Copy, Debug)]
pub struct Width(pub ReadSignal<u32>);

/// A chart's size for a window of this width; the browser then scales it slightly to fit.
pub fn size(window: u32) -> (u32, u32) {
    let width = match window {
        0..=800 => window.saturating_sub(32),
        801..=1100 => window.saturating_sub(336),
        _ => window.min(1536).saturating_sub(432),
    };
    let width = width.clamp(280, 1120);
    (width, (width / 3).clamp(190, 280))
}

/// The drawing as a self-contained file: without the page's style sheets, so each class becomes a colour again.
pub fn self_contained(svg: &str) -> String {
    const COLOURS: [(&str, &str); 14] = [
        ("fill-main", "fill=\"#cfe3dc\""),
        ("fill-peak", "fill=\"#222\""),
        ("fill-over", "fill=\"#f4d9d6\""),
        ("fill-soft", "fill=\"#555\""),
        ("line-axis", "stroke=\"#888\""),
        ("line-grid", "stroke=\"#ddd\""),
        ("line-soft", "stroke=\"#555\""),
        ("line-main", "stroke=\"#1f6f5c\""),
        ("line-limit", "stroke=\"#b3261e\""),
        ("fill-ghost", "fill=\"#888\""),
        ("line-ghost", "stroke=\"#888\""),
        ("fill-forward", "fill=\"#d9e8e3\""),
        ("fill-backward", "fill=\"#8fbcae\""),
        ("fill-weights", "fill=\"#d5d5d2\""),
    ];
    let Some(head) = svg.find('>') else {
        return String::new();
    };
    let ground = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    let mut alone = format!("{}{ground}{}", &svg[..=head], &svg[head + 1..]);
    for (class, colour) in COLOURS {
        alone = alone.replace(&format!("class=\"{class}\""), colour);
    }
    for (id, colour) in PART_COLOURS {
        alone = alone.replace(
            &format!("class=\"part-{id}\""),
            &format!("fill=\"{colour}\""),
        );
    }
    alone
}

/// A number on an axis: no more digits than it needs.
fn mark(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_contained_drawing_has_colours_and_a_background() {
        let roles = Role::ALL
            .map(|(_, name)| format!("<g class=\"line-{name}\"/><g class=\"fill-{name}\"/>"));
        let alone = self_contained(&format!("<svg a=\"1\">{}</svg>", roles.concat()));
        assert!(alone.starts_with("<svg a=\"1\"><rect ") && alone.contains("stroke=\"#b3261e\""));
        assert_eq!(self_contained("no drawing"), "");
    }

    #[test]
    fn axis_numbers_are_short() {
        let check = |value, expected: &str| assert_eq!(mark(value), expected);
        check(0.0, "0");
        check(2.5, "2.5");
        check(10.0, "10");
        check(0.25, "0.25");
    }
}
