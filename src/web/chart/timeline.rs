//! Allocated memory over one training step.

use super::Role;
use super::plot::{LEFT, Mark, Plot, RIGHT};
use crate::estimate::{Instant, Phase};
use crate::units::{Bytes, UnitStyle};
use crate::web::text;

/// The drawing as SVG, or nothing where there is no step to draw; behind it the step it is to be compared with.
pub fn timeline(
    instants: &[Instant],
    before: &[Instant],
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let (at, peak) = peak(instants)?;
    let highest = self::peak(before).map_or(peak, |(_, it)| it.max(peak));
    let (scale, _) = units.scale(highest);
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let last = instants.len() as f64;
    let top = height(highest) * 1.08;
    // Each instant lasts until the next: memory changes in steps, not in slopes. Two steps share one width.
    let line = |instants: &[Instant]| -> Vec<(f64, f64)> {
        let width = last / instants.len().max(1) as f64;
        let both_ends = |(index, it): (usize, &Instant)| {
            let (start, height) = (index as f64 * width, height(it.bytes));
            [(start, height), (start + width, height)]
        };
        instants.iter().enumerate().flat_map(both_ends).collect()
    };
    let steps = line(instants);
    let mut under = steps.clone();
    under.extend([(last, 0.0), (0.0, 0.0)]);
    let mut marks = vec![
        Mark::Area(under, Role::Main),
        Mark::Line(steps, Role::Main, 2),
    ];
    if !before.is_empty() {
        marks.push(Mark::Line(line(before), Role::Ghost, 1));
    }
    let starts = starts(instants);
    let ends = starts.iter().skip(1).map(|(start, _)| *start);
    for ((start, phase), end) in starts.iter().zip(ends.chain([instants.len()])) {
        let name = text::phase(*phase);
        let room = (end - start) as f64 / last * f64::from(size.0);
        let start = *start as f64;
        marks.push(Mark::Line(vec![(start, 0.0), (start, top)], Role::Axis, 1));
        // A name that is wider than its phase would lie on the next one.
        if room > name.len() as f64 * 8.0 {
            marks.push(Mark::Name((start, top), name));
        }
    }
    marks.push(Mark::Dot((at as f64 + 0.5, height(peak)), Role::Peak));
    let end = (last, top);
    Plot {
        size,
        end,
        numbers: false,
        marks,
    }
    .svg()
}

/// The instant with the most memory, and how much.
pub fn peak(instants: &[Instant]) -> Option<(usize, Bytes)> {
    let sizes = instants.iter().map(|it| it.bytes).enumerate();
    sizes.rev().max_by_key(|(_, bytes)| *bytes)
}

/// The instant under a place that is this share of the drawing's width from its left edge.
pub fn instant_at(share: f64, count: usize, width: u32) -> Option<usize> {
    let plot = width.checked_sub(LEFT + RIGHT)?;
    let within = (share * f64::from(width) - f64::from(LEFT)) / f64::from(plot);
    let last = count.checked_sub(1)?;
    Some(((within.max(0.0) * count as f64) as usize).min(last))
}

/// Where an instant's middle is, in percent of the drawing's width.
pub fn cursor_at(instant: usize, count: usize, width: u32) -> f64 {
    let plot = f64::from(width.saturating_sub(LEFT + RIGHT));
    let within = (instant as f64 + 0.5) / count.max(1) as f64;
    (f64::from(LEFT) + within * plot) / f64::from(width.max(1)) * 100.0
}

/// Where each phase begins.
fn starts(instants: &[Instant]) -> Vec<(usize, Phase)> {
    let mut starts: Vec<(usize, Phase)> = Vec::new();
    for (index, instant) in instants.iter().enumerate() {
        if starts
            .last()
            .is_none_or(|(_, phase)| *phase != instant.phase)
        {
            starts.push((index, instant.phase));
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    #[test]
    fn the_drawing_has_classes_and_no_colours_or_styles() {
        let instants = sample::estimate().timeline;
        let svg = timeline(&instants, &[], UnitStyle::Binary, (640, 240)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("class=\"line-main\""));
        assert!(!svg.contains('#') && !svg.contains("style="), "{svg}");
        for phase in ["Forward", "Backward", "Optimizer"] {
            assert!(svg.contains(phase));
        }
    }

    #[test]
    fn nothing_to_draw_is_no_drawing() {
        assert_eq!(timeline(&[], &[], UnitStyle::Binary, (640, 240)), None);
    }

    #[test]
    fn pointing_and_the_cursor_agree() {
        for count in [1, 7, 300] {
            for instant in 0..count {
                let share = cursor_at(instant, count, 640) / 100.0;
                assert_eq!(instant_at(share, count, 640), Some(instant));
            }
            assert_eq!(instant_at(0.0, count, 640), Some(0));
            assert_eq!(instant_at(1.0, count, 640), Some(count - 1));
        }
        assert_eq!(instant_at(0.5, 0, 640), None);
        assert_eq!(instant_at(0.5, 3, 10), None);
    }

    #[test]
    fn the_peak_is_the_first_of_the_highest() {
        let instants = sample::estimate().timeline;
        assert_eq!(peak(&instants), Some((2, Bytes::gib(8.0))));
        let phases = [
            (0, Phase::Forward),
            (2, Phase::Backward),
            (4, Phase::Optimizer),
        ];
        assert_eq!(starts(&instants), phases);
    }
}
