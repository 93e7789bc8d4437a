//! Allocated memory over one training step.

use super::Role;
use super::plot::{LEFT, Mark, MemoryAxis, Plot, RIGHT};
use crate::shared::colours::CATEGORIES;
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{Category, Instant, Part, Phase};

/// The data of one step's chart.
#[derive(Clone, Copy, Debug)]
pub struct TimelineData<'a> {
    pub instants: &'a [Instant],
    /// Each instant by category; empty if unknown.
    pub parts: &'a [Vec<Part<Category>>],
    /// The step to compare with.
    pub before: &'a [Instant],
    /// The GPU's usable memory.
    pub usable: Option<Bytes>,
}

/// The chart as SVG, or empty without a step.
pub fn timeline(data: TimelineData, units: UnitStyle, size: (u32, u32)) -> Option<String> {
    let TimelineData {
        instants,
        parts,
        before,
        usable,
    } = data;
    let (at, peak) = peak(instants)?;
    let highest = self::peak(before).map_or(peak, |(_, other)| other.max(peak));
    let axis = MemoryAxis::new(highest, usable, units).below_names();
    let height = |bytes: Bytes| axis.height(bytes);
    let last = instants.len() as f64;
    let top = axis.end();
    let line = |heights: &mut dyn Iterator<Item = f64>, count: usize| {
        staircase(heights, last / count.max(1) as f64)
    };
    let steps = line(
        &mut instants.iter().map(|instant| height(instant.bytes)),
        instants.len(),
    );
    let mut marks = stacked(instants, parts, height);
    if marks.is_empty() {
        let mut under = steps.clone();
        under.extend([(last, 0.0), (0.0, 0.0)]);
        marks.push(Mark::Area(under, Role::Main));
    }
    marks.push(Mark::Line(steps, Role::Main, 2));
    if !before.is_empty() {
        let heights = &mut before.iter().map(|instant| height(instant.bytes));
        marks.push(Mark::Line(line(heights, before.len()), Role::Ghost, 1));
    }
    marks.extend(axis.limit(last, units));
    let starts = starts(instants);
    let rounds = starts.iter().filter(|(_, phase)| *phase == Phase::Forward);
    let (rounds, mut round) = (rounds.count(), 0);
    for (start, phase) in &starts {
        let x = *start as f64;
        round += usize::from(*phase == Phase::Forward);
        marks.push(Mark::Line(vec![(x, 0.0), (x, top)], Role::Axis, 1));
        let name = match phase {
            // Too short for a label, which would displace the next.
            Phase::Setup => continue,
            // With several micro-batches each is labelled by its number.
            Phase::Forward if rounds > 1 => format!("{} {round}", text::phase(*phase)),
            Phase::Backward if rounds > 1 => continue,
            _ => text::phase(*phase).into(),
        };
        marks.push(Mark::Name(x, name));
    }
    marks.push(Mark::Dot((at as f64 + 0.5, height(peak)), Role::Peak));
    let end = (last, top);
    Plot {
        size,
        end,
        numbers: false,
        rows: None,
        marks,
    }
    .svg()
}

/// Each instant lasts until the next: memory changes in steps, not in slopes. Equal neighbours are merged.
fn staircase(heights: &mut dyn Iterator<Item = f64>, width: f64) -> Vec<(f64, f64)> {
    let mut places: Vec<(f64, f64)> = Vec::new();
    for (index, height) in heights.enumerate() {
        let (start, end) = (index as f64 * width, (index + 1) as f64 * width);
        match places.last_mut() {
            Some(last) if (last.1 - height).abs() < f64::EPSILON => last.0 = end,
            _ => places.extend([(start, height), (end, height)]),
        }
    }
    places
}

/// The stacked categories, each from the top of the one below.
fn stacked(
    instants: &[Instant],
    parts: &[Vec<Part<Category>>],
    height: impl Fn(Bytes) -> f64,
) -> Vec<Mark> {
    if parts.len() != instants.len() {
        return Vec::new();
    }
    let mut floor = vec![0.0; parts.len()];
    let mut marks = Vec::new();
    for (at, category) in (0..).zip(CATEGORIES) {
        let own = parts.iter().map(|parts| {
            let part = parts.iter().find(|part| part.what == category);
            part.map_or(0.0, |part| height(part.bytes))
        });
        let own: Vec<f64> = own.collect();
        if own.iter().all(|own| *own <= 0.0) {
            continue;
        }
        let beneath = staircase(&mut floor.iter().copied(), 1.0);
        for (floor, own) in floor.iter_mut().zip(own) {
            *floor += own;
        }
        let mut outline = staircase(&mut floor.iter().copied(), 1.0);
        outline.extend(beneath.into_iter().rev());
        marks.push(Mark::Area(outline, Role::Part(at)));
    }
    marks
}

/// The number of forward passes that are drawn.
pub fn passes(instants: &[Instant]) -> usize {
    let starts = starts(instants);
    starts
        .iter()
        .filter(|(_, phase)| *phase == Phase::Forward)
        .count()
}

/// The instant with the most memory, and how much.
pub fn peak(instants: &[Instant]) -> Option<(usize, Bytes)> {
    let sizes = instants.iter().map(|instant| instant.bytes).enumerate();
    sizes.rev().max_by_key(|(_, bytes)| *bytes)
}

/// The instant at this share of the drawing's width.
pub fn instant_at(share: f64, count: usize, width: u32) -> Option<usize> {
    let plot = width.checked_sub(LEFT + RIGHT)?;
    let within = (share * f64::from(width) - f64::from(LEFT)) / f64::from(plot);
    let last = count.checked_sub(1)?;
    Some(((within.max(0.0) * count as f64) as usize).min(last))
}

/// The middle of an instant, in percent of the drawing's width.
pub fn cursor_at(instant: usize, count: usize, width: u32) -> f64 {
    let plot = f64::from(width.saturating_sub(LEFT + RIGHT));
    let within = (instant as f64 + 0.5) / count.max(1) as f64;
    (f64::from(LEFT) + within * plot) / f64::from(width.max(1)) * 100.0
}

/// The value at this share of the width of a drawing whose horizontal axis goes from zero to the last value.
pub fn value_at(share: f64, last: u64, width: u32) -> Option<f64> {
    let plot = width.checked_sub(LEFT + RIGHT)?;
    let within = (share * f64::from(width) - f64::from(LEFT)) / f64::from(plot);
    within
        .is_finite()
        .then(|| within.clamp(0.0, 1.0) * last as f64)
}

/// The position of a value, in percent of the drawing's width.
pub fn place_of(value: u64, last: u64, width: u32) -> f64 {
    let plot = f64::from(width.saturating_sub(LEFT + RIGHT));
    let within = value as f64 / last.max(1) as f64;
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
    use crate::shared::sample;

    fn draw(
        instants: &[Instant],
        parts: &[Vec<Part<Category>>],
        usable: Option<Bytes>,
    ) -> Option<String> {
        let data = TimelineData {
            instants,
            parts,
            before: &[],
            usable,
        };
        timeline(data, UnitStyle::Binary, (640, 240))
    }

    #[test]
    fn categories_are_stacked_and_the_limit_is_drawn_if_near() {
        let instants = sample::estimate().timeline;
        let part = |what, gib| Part {
            what,
            bytes: Bytes::gib(gib),
        };
        let parts = vec![
            vec![
                part(Category::Parameters, 2.0),
                part(Category::Activations, 1.0)
            ];
            5
        ];
        let svg = draw(&instants, &parts, Some(Bytes::gib(10.0))).unwrap();
        for class in ["part-parameters", "part-activations", "line-limit"] {
            assert!(svg.contains(&format!("class=\"{class}\"")), "{class}");
        }
        assert!(!svg.contains("part-gradients") && !svg.contains('#'));
        assert!(
            !draw(&instants, &[], Some(Bytes::gib(80.0)))
                .unwrap()
                .contains("line-limit")
        );
    }

    #[test]
    fn pointer_and_cursor_agree() {
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
