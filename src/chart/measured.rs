//! Peaks that were measured, step by step, against the one that was predicted.

use super::Role;
use super::plot::{Mark, Plot};
use headroom_base::units::{Bytes, UnitStyle};

/// The drawing as SVG, or nothing where nothing was measured.
pub fn measured(
    steps: &[(f64, Bytes)],
    predicted: Bytes,
    units: UnitStyle,
    size: (u32, u32),
) -> Option<String> {
    let most = steps.iter().map(|step| step.1).max()?.max(predicted);
    let last = steps.iter().map(|step| step.0).fold(1.0, f64::max);
    let (scale, _) = units.scale(most);
    let height = |bytes: Bytes| bytes.get() as f64 / scale;
    let line = steps
        .iter()
        .map(|(step, bytes)| (*step, height(*bytes)))
        .collect();
    let at = height(predicted);
    let marks = vec![
        Mark::Line(vec![(0.0, at), (last, at)], Role::Ghost, 2),
        Mark::Line(line, Role::Main, 2),
    ];
    Plot {
        size,
        end: (last, height(most) * 1.08),
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
    fn both_are_drawn() {
        let steps: Vec<_> = (0..4)
            .map(|step| (f64::from(step), Bytes::gib(1.0)))
            .collect();
        let svg = measured(&steps, Bytes::gib(2.0), UnitStyle::Binary, (640, 240)).unwrap();
        assert!(svg.contains("line-ghost") && svg.contains("line-main"));
        assert_eq!(
            measured(&[], Bytes::gib(2.0), UnitStyle::Binary, (640, 240)),
            None
        );
    }
}
