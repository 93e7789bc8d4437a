//! A probe log: one JSON line a step, written by the exported probe, and what its history shows.

use serde::Serialize;

use crate::document::Document;
use crate::import::json;
use crate::units::Bytes;

/// One step. What a probe could not read is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// Counted from 0; −1 is before the first.
    pub step: i64,
    /// What makes batches differ: tokens, peaks, edges, pixels.
    pub size: Option<f64>,
    /// The most allocated during the step.
    pub peak_allocated: Bytes,
    /// Allocated when the step had ended, or at its failure.
    pub allocated: Bytes,
    pub reserved: Bytes,
    /// What the driver had left, and the card's whole.
    pub free: Option<Bytes>,
    pub total: Option<Bytes>,
    /// The failed request, where the step did not end.
    pub requested: Option<Bytes>,
    pub evaluating: bool,
}

/// The steps of a log, the failed one apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Log {
    pub steps: Vec<Step>,
    pub failed: Option<Step>,
    /// Steps that failed before that one, in a run that went on.
    pub failed_before: Vec<Step>,
}

/// How memory between steps developed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Drift {
    None,
    /// It grew all along, by this much.
    Steady(Bytes),
    /// It rose at one step and stayed.
    Jump {
        step: i64,
        by: Bytes,
    },
}

impl Log {
    /// The lines of a probe among whatever else the text holds.
    pub fn parse(text: &str) -> Option<Self> {
        let mut log = Self::default();
        for line in text.lines().map(str::trim) {
            if !(line.starts_with('{') && line.contains("\"peak_allocated\"")) {
                continue;
            }
            if let Ok(document) = json::read(line) {
                let step = Step::read(&document);
                if document.get("oom") == Some(&Document::Bool(true)) {
                    log.failed_before.extend(log.failed.replace(step));
                } else {
                    log.steps.push(step);
                }
            }
        }
        (!log.steps.is_empty() || log.failed.is_some()).then_some(log)
    }

    /// Training steps that ended, after the first, in which optimizer states come to be.
    pub fn settled(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|it| it.step > 0 && !it.evaluating)
    }

    fn at(&self, step: i64) -> Option<&Step> {
        self.steps
            .iter()
            .find(|it| it.step == step && !it.evaluating)
    }

    /// How much allocated memory between steps moved, where it moved by at least `least`.
    pub fn drift(&self, least: Bytes) -> Drift {
        let ends: Vec<(i64, u64)> = self
            .settled()
            .map(|it| (it.step, it.allocated.get()))
            .collect();
        let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
            return Drift::None;
        };
        let grown = last.1.saturating_sub(first.1);
        if grown < least.get().max(1) || ends.len() < 4 {
            return Drift::None;
        }
        let jump = ends
            .windows(2)
            .map(|it| (it[1].0, it[1].1.saturating_sub(it[0].1)))
            .max_by_key(|it| it.1);
        let at = |part: usize| ends[(ends.len() - 1) * part / 4].1;
        let rising = (0..4).filter(|it| at(it + 1) > at(*it)).count();
        match jump {
            Some((step, by)) if by * 5 >= grown * 3 && rising < 4 => Drift::Jump {
                step,
                by: Bytes::new(by),
            },
            _ if rising >= 3 => Drift::Steady(Bytes::new(grown)),
            _ => Drift::None,
        }
    }

    /// What a batch of this size should have needed, going by the steps before.
    pub fn expected_peak(&self, size: Option<f64>) -> Option<Bytes> {
        let points: Vec<(f64, f64)> = self
            .settled()
            .filter_map(|it| Some((it.size?, it.peak_allocated.get() as f64)))
            .collect();
        let Some(size) = size else {
            return self.settled().map(|it| it.peak_allocated).max();
        };
        if let Some((offset, slope)) = line(&points) {
            return Some(Bytes::new((offset + slope * size).max(0.0) as u64));
        }
        // One size only, or the first step only: activations go with the size, what lies between steps does not.
        let reference = self.settled().last().or_else(|| self.at(0))?;
        let before = match reference.step {
            0 => self.at(-1)?.allocated,
            _ => reference.allocated,
        };
        let scale = reference.size.map_or(1.0, |it| size / it.max(1.0));
        let activations = (reference.peak_allocated - before).scale(scale);
        Some(reference.allocated + activations)
    }

    /// The sizes met before the failure: smallest and largest.
    pub fn sizes(&self) -> Option<(f64, f64)> {
        let sizes = self
            .steps
            .iter()
            .chain(&self.failed_before)
            .filter(|it| !it.evaluating)
            .filter_map(|it| it.size);
        sizes.fold(None, |range, it| match range {
            None => Some((it, it)),
            Some((low, high)) => Some((it.min(low), it.max(high))),
        })
    }
}

/// The straight line through the points, by least squares, where they spread enough to have one.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let spread: f64 = points.iter().map(|it| (it.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let slope = together / spread;
    (points.len() >= 2 && spread > (0.01 * x).powi(2) * n && slope >= 0.0)
        .then_some((y - slope * x, slope))
}

impl Step {
    fn read(document: &Document) -> Self {
        let number = |key: &str| match document.get(key)? {
            Document::Int(it) => Some(*it as f64),
            Document::Number(it) => Some(*it),
            _ => None,
        };
        let bytes = |key: &str| number(key).map(|it| Bytes::new(it.max(0.0) as u64));
        Self {
            step: number("step").unwrap_or(0.0) as i64,
            size: number("size"),
            peak_allocated: bytes("peak_allocated").unwrap_or_default(),
            allocated: bytes("allocated").unwrap_or_default(),
            reserved: bytes("reserved").unwrap_or_default(),
            free: bytes("free"),
            total: bytes("total"),
            requested: bytes("requested"),
            evaluating: document.get("phase") == Some(&Document::Text("eval".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(ends: &[u64]) -> Log {
        let lines: Vec<String> = (0..)
            .zip(ends)
            .map(|(step, end)| {
                format!(
                    "{{\"step\":{step},\"size\":{},\"peak_allocated\":{},\"allocated\":{end},\"reserved\":9000}}",
                    100 + step % 7,
                    end + 1000 + 10 * (step % 7)
                )
            })
            .collect();
        Log::parse(&lines.join("\n")).unwrap()
    }

    #[track_caller]
    fn check(ends: &[u64], expected: Drift) {
        assert_eq!(log(ends).drift(Bytes::new(50)), expected, "{ends:?}");
    }

    #[test]
    fn drift_is_told_from_a_jump() {
        check(&[10, 20, 20, 20, 21, 20, 20, 20], Drift::None);
        check(
            &[0, 0, 100, 200, 300, 400, 500],
            Drift::Steady(Bytes::new(500)),
        );
        let jump = Drift::Jump {
            step: 5,
            by: Bytes::new(400),
        };
        check(&[0, 10, 10, 10, 10, 410, 410, 410, 410], jump);
    }

    #[test]
    fn peaks_follow_sizes() {
        let log = log(&[500; 20]);
        assert_eq!(log.expected_peak(Some(110.0)), Some(Bytes::new(1600)));
        assert_eq!(log.sizes(), Some((100.0, 106.0)));
        assert_eq!(Log::parse("no log"), None);
    }
}
