//! Memory against the time of a step, for runs to choose from.

use super::plot::{BOTTOM, LEFT, MemoryAxis, NUMBERS, RIGHT, TOP};
use headroom_base::units::{Bytes, UnitStyle};

/// The axes of some runs, each with its memory and its seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Front {
    axis: MemoryAxis,
    /// The end of the axis of time.
    across: f64,
    units: UnitStyle,
}

impl Front {
    /// `None` without runs.
    pub fn of(runs: &[(Bytes, f64)], usable: Option<Bytes>, units: UnitStyle) -> Option<Self> {
        let most = runs.iter().map(|run| run.0).max()?;
        let slowest = runs.iter().map(|run| run.1).fold(0.0, f64::max);
        Some(Self {
            axis: MemoryAxis::new(most, usable, units),
            across: slowest * 1.08,
            units,
        })
    }

    pub fn unit(&self) -> &'static str {
        self.axis.unit(self.units)
    }

    /// The axes and the limit, without the runs.
    pub fn svg(&self, size: (u32, u32)) -> Option<String> {
        let marks = self.axis.limit(self.across, self.units);
        self.axis
            .svg(self.across, marks.into_iter().collect(), size)
    }

    /// The place of a run, in percent of the drawing's width and height.
    pub fn place(&self, (bytes, seconds): (Bytes, f64), size: (u32, u32)) -> (f64, f64) {
        let (width, height) = (f64::from(size.0.max(1)), f64::from(size.1.max(1)));
        let right =
            f64::from(LEFT) + seconds / self.across.max(1e-9) * (width - f64::from(LEFT + RIGHT));
        let plot = height - f64::from(TOP + BOTTOM + NUMBERS);
        let share = self.axis.height(bytes) / self.axis.end().max(1e-9);
        let down = f64::from(TOP) + (1.0 - share) * plot;
        (right / width * 100.0, down / height * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_placed_within_the_axes() {
        let runs: Vec<_> = (1..=5)
            .map(|at| (Bytes::gib(f64::from(at)), 6.0 - f64::from(at)))
            .collect();
        let usable = Some(Bytes::gib(6.0));
        let front = Front::of(&runs, usable, UnitStyle::Binary).unwrap();
        let size = (640, 240);
        let svg = front.svg(size).unwrap();
        assert!(
            svg.contains("line-limit") && svg.contains("6.00 GiB usable"),
            "{svg}"
        );
        let places: Vec<_> = runs.iter().map(|run| front.place(*run, size)).collect();
        // More memory is higher, less time further left.
        for pair in places.windows(2) {
            assert!(pair[1].0 < pair[0].0 && pair[1].1 < pair[0].1, "{places:?}");
        }
        assert!(
            places
                .iter()
                .all(|(x, y)| (0.0..100.0).contains(x) && (0.0..100.0).contains(y))
        );
        assert_eq!(Front::of(&[], usable, UnitStyle::Binary), None);
    }
}
