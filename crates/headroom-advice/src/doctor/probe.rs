//! A probe log, one JSON line per step, and the history of memory in it.

use serde::Serialize;

use super::drift::{Drift, drift};
use headroom_base::document::Document;
use headroom_base::document::json;
use headroom_base::units::Bytes;

/// One step of the log. Values the probe could not read are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LoggedStep {
    /// Counted from 0; −1 is before the first.
    pub step: i64,
    /// The batch's size: tokens, peaks, edges or pixels.
    pub size: Option<f64>,
    /// The most allocated during the step.
    pub peak_allocated: Bytes,
    /// Allocated at the end of the step, or at its failure.
    pub allocated: Bytes,
    pub reserved: Bytes,
    /// The GPU's free and total memory, as the driver reports it.
    pub free: Option<Bytes>,
    pub total: Option<Bytes>,
    /// The failed request, if the step failed.
    pub requested: Option<Bytes>,
    /// An evaluation or a generation, not a training step.
    pub evaluating: bool,
    /// A checkpoint was being read or written.
    pub checkpoint: bool,
    pub in_optimizer: bool,
    /// Device memory outside PyTorch at the start of the log.
    pub outside: Option<Bytes>,
}

/// The steps of a log, without the failed one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Log {
    pub steps: Vec<LoggedStep>,
    pub failed: Option<LoggedStep>,
    /// Earlier failed steps, in a run that continued.
    pub failed_before: Vec<LoggedStep>,
}

impl Log {
    /// Parses the probe's lines and ignores all others.
    pub fn parse(text: &str) -> Option<Self> {
        let mut log = Self::default();
        for line in text.lines().map(str::trim) {
            if !(line.starts_with('{') && line.contains("\"peak_allocated\"")) {
                continue;
            }
            if let Ok(document) = json::read(line) {
                let step = LoggedStep::read(&document);
                if document.get("oom") == Some(&Document::Bool(true)) {
                    log.failed_before.extend(log.failed.replace(step));
                } else {
                    log.steps.push(step);
                }
            }
        }
        (!log.steps.is_empty() || log.failed.is_some()).then_some(log)
    }

    /// Completed training steps after the first, in which optimizer states are created.
    pub fn settled(&self) -> impl Iterator<Item = &LoggedStep> {
        self.steps
            .iter()
            .filter(|step| step.step > 0 && !step.evaluating)
    }

    /// Completed training steps.
    pub fn trained(&self) -> impl DoubleEndedIterator<Item = &LoggedStep> {
        self.steps
            .iter()
            .filter(|step| step.step >= 0 && !step.evaluating)
    }

    /// How often memory between steps rose by at least half of `least` and never fell back.
    pub fn rises(&self, least: Bytes) -> usize {
        let mut lowest: Vec<u64> = self.settled().map(|step| step.allocated.get()).collect();
        for at in (1..lowest.len()).rev() {
            lowest[at - 1] = lowest[at - 1].min(lowest[at]);
        }
        let half = (least.get() / 2).max(1);
        let rising = lowest.windows(2).filter(|pair| pair[1] - pair[0] >= half);
        rising.count()
    }

    /// The need of a step of this size on top of the memory between steps, from earlier steps.
    pub fn need(&self, size: Option<f64>) -> Option<Bytes> {
        let trained: Vec<&LoggedStep> = self.trained().collect();
        let needs: Vec<(Option<f64>, f64)> = trained
            .windows(2)
            .filter(|pair| pair[1].step > 0)
            .map(|pair| {
                let need = pair[1].peak_allocated - pair[0].allocated;
                (pair[1].size, need.get() as f64)
            })
            .collect();
        let most = |needs: &mut dyn Iterator<Item = f64>| needs.reduce(f64::max);
        let Some(size) = size else {
            return most(&mut needs.iter().map(|(_, need)| *need)).map(bytes);
        };
        let points: Vec<(f64, f64)> = needs
            .iter()
            .filter_map(|(size, need)| Some(((*size)?, *need)))
            .collect();
        if let Some((offset, slope)) = line(&points) {
            return Some(bytes(offset + slope * size));
        }
        // Only one size: activations scale with it.
        let largest = points.iter().map(|(size, _)| *size).reduce(f64::max)?;
        let need = most(&mut points.iter().map(|(_, need)| *need))?;
        Some(bytes(need * (size / largest.max(1.0)).max(1.0)))
    }

    fn at(&self, step: i64) -> Option<&LoggedStep> {
        self.steps
            .iter()
            .find(|logged| logged.step == step && !logged.evaluating)
    }

    /// The drift of allocated memory between steps, if it is at least `least`.
    pub fn drift(&self, least: Bytes) -> Drift {
        let ends: Vec<(i64, u64)> = self
            .settled()
            .map(|step| (step.step, step.allocated.get()))
            .collect();
        drift(&ends, least)
    }

    /// The peak expected for a batch of this size, from earlier steps.
    pub fn expected_peak(&self, size: Option<f64>) -> Option<Bytes> {
        let points: Vec<(f64, f64)> = self
            .settled()
            .filter_map(|step| Some((step.size?, step.peak_allocated.get() as f64)))
            .collect();
        let Some(size) = size else {
            return self.settled().map(|step| step.peak_allocated).max();
        };
        if let Some((offset, slope)) = line(&points) {
            return Some(Bytes::new((offset + slope * size).max(0.0) as u64));
        }
        // Only one size, or only the first step: activations scale with the size, memory between steps does not.
        let reference = self.settled().last().or_else(|| self.at(0))?;
        let before = match reference.step {
            0 => self.at(-1)?.allocated,
            _ => reference.allocated,
        };
        let scale = reference
            .size
            .map_or(1.0, |of_reference| size / of_reference.max(1.0));
        let activations = (reference.peak_allocated - before).scale(scale);
        Some(reference.allocated + activations)
    }

    /// The smallest and largest size before the failure.
    pub fn sizes(&self) -> Option<(f64, f64)> {
        let sizes = self
            .steps
            .iter()
            .chain(&self.failed_before)
            .filter(|step| !step.evaluating)
            .filter_map(|step| step.size);
        sizes.fold(None, |range, size| match range {
            None => Some((size, size)),
            Some((low, high)) => Some((size.min(low), size.max(high))),
        })
    }
}

fn bytes(count: f64) -> Bytes {
    Bytes::new(count.max(0.0) as u64)
}

/// A least-squares line through the points, if they are spread enough.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let slope = together / spread;
    (points.len() >= 2 && spread > (0.01 * x).powi(2) * n && slope >= 0.0)
        .then_some((y - slope * x, slope))
}

impl LoggedStep {
    /// Device memory outside PyTorch, as logged or derived from the other numbers.
    pub fn outside_pytorch(&self) -> Option<Bytes> {
        self.outside
            .or_else(|| Some(self.total? - self.free? - self.reserved))
    }

    fn read(document: &Document) -> Self {
        let number = |key: &str| match document.get(key)? {
            Document::Int(value) => Some(*value as f64),
            Document::Number(value) => Some(*value),
            _ => None,
        };
        let phase = match document.get("phase") {
            Some(Document::Text(phase)) => phase.as_str(),
            _ => "",
        };
        let in_phase = |words: &[&str]| words.iter().any(|word| phase.starts_with(word));
        let bytes = |key: &str| number(key).map(|number| Bytes::new(number.max(0.0) as u64));
        Self {
            step: number("step").unwrap_or(0.0) as i64,
            size: number("size"),
            peak_allocated: bytes("peak_allocated").unwrap_or_default(),
            allocated: bytes("allocated").unwrap_or_default(),
            reserved: bytes("reserved").unwrap_or_default(),
            free: bytes("free"),
            total: bytes("total"),
            requested: bytes("requested"),
            outside: bytes("outside"),
            evaluating: in_phase(&["eval", "generate", "predict"]),
            checkpoint: in_phase(&["save", "load"]),
            in_optimizer: in_phase(&["optimizer"]),
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
    fn drift_is_distinguished_from_a_jump() {
        check(&[10, 20, 20, 20, 21, 20, 20, 20], Drift::None);
        check(
            &[0, 0, 100, 200, 300, 400, 500],
            Drift::Steady(Bytes::new(400)),
        );
        // What the last batch left alive goes with its size.
        check(&[0, 10, 90, 20, 100, 30, 70, 80, 15, 95], Drift::None);
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
