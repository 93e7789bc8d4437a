//! The passes of a pipeline's ranks against time.

use super::plot::{LEFT, Mark, Plot, RIGHT};
use super::{Role, labels};
use headroom_core::schedule::{PassKind, TimedPass};

/// The unit for an axis of this length, and its factor from seconds.
pub fn time_unit(seconds: f64) -> (f64, &'static str) {
    if seconds < 2.0 {
        (1000.0, "ms")
    } else {
        (1.0, "s")
    }
}

/// The chart as SVG, or empty without passes: a row per rank, a box per pass.
pub fn pipeline(ranks: &[Vec<TimedPass>], size: (u32, u32)) -> Option<String> {
    /// The narrowest box with a micro-batch's number, in pixels.
    const LINE: f64 = 15.0;
    let end = ranks
        .iter()
        .flatten()
        .map(|pass| pass.end)
        .fold(0.0, f64::max);
    let count = u32::try_from(ranks.len()).ok()?;
    if end <= 0.0 {
        return None;
    }
    let (scale, _) = time_unit(end);
    let width = f64::from(size.0.saturating_sub(LEFT + RIGHT).max(1));
    let pixel = end / width;
    let row_height = f64::from(size.1.saturating_sub(60)) / f64::from(count);
    let mut marks = Vec::new();
    for (row, passes) in ranks.iter().enumerate() {
        let middle = f64::from(count) - row as f64;
        for pass in passes {
            // A gap between neighbours.
            let gap = pixel.min((pass.end - pass.start) / 4.0) / 2.0;
            let (left, right) = ((pass.start + gap) * scale, (pass.end - gap) * scale);
            let (low, high) = (middle - 0.42, middle + 0.42);
            let outline = vec![(left, low), (left, high), (right, high), (right, low)];
            marks.push(Mark::Area(outline, role(pass.kind)));
            let number = (pass.chunk.micro_batch + 1).to_string();
            let fits = (pass.end - pass.start) / pixel >= labels::width(&number, 12.0) + 2.0;
            if fits && row_height >= LINE {
                marks.push(Mark::Word((f64::midpoint(left, right), middle), number));
            }
        }
    }
    Plot {
        size,
        end: (end * scale, f64::from(count) + 0.6),
        numbers: true,
        rows: Some(count),
        marks,
    }
    .svg()
}

const fn role(kind: PassKind) -> Role {
    match kind {
        PassKind::Forward => Role::Forward,
        PassKind::Backward | PassKind::BackwardInput => Role::Backward,
        PassKind::BackwardWeight => Role::Weights,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_core::schedule::{PassTimes, Pipeline};
    use headroom_scenario::Schedule;

    #[test]
    fn every_pass_is_a_box_with_its_number() {
        let pipeline_of = |ranks: usize| Pipeline {
            schedule: Schedule::OneForwardOneBackward,
            ranks,
            stages: 1,
            rank: 0,
            micro_batches: 6,
            frees_sent: false,
        };
        let draw = |ranks: usize, width: u32| {
            let times = PassTimes {
                forward: 0.1,
                backward: 0.2,
            };
            pipeline(&pipeline_of(ranks).timetable(times), (width, 240)).unwrap()
        };
        let svg = draw(4, 800);
        assert_eq!(svg.matches("class=\"fill-forward\"").count(), 24);
        assert_eq!(svg.matches("class=\"fill-backward\"").count(), 24);
        assert!(svg.matches("class=\"fill-peak\"").count() >= 48, "{svg}");
        // Where there is no room there are no numbers.
        assert_eq!(draw(4, 120).matches("class=\"fill-peak\"").count(), 0);
        assert_eq!(draw(32, 800).matches("class=\"fill-peak\"").count(), 0);
        assert_eq!(pipeline(&[], (800, 240)), None);
    }
}
