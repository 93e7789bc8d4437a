//! One run on every GPU of the catalogue: whether it fits, with which micro-batch, and how long a step takes.

use std::cmp::Ordering;

use super::goal::Goal;
use super::micro::{all, first_that_fits, with_batch};
use super::solve::on;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_catalog::{self as catalog, Gpu};
use headroom_core::estimate::time::Span;
use headroom_core::estimate::{Band, Estimate, Fit, Prediction, estimate, quick_peak};
use headroom_scenario::Scenario;

/// Whether a run fits a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuVerdict {
    Fits,
    /// It fits with less than 5 % to spare, or not at the upper end of the estimate.
    Tight,
    No,
    /// The run is impossible there, or the GPU's memory is unknown.
    Unknown,
}

impl GpuVerdict {
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }

    pub fn of(estimate: &Estimate) -> Self {
        const SPARE: f64 = 0.95;
        let close = |usable: Bytes| estimate.device.expected > usable.scale(SPARE);
        match estimate.fit() {
            Some(Fit::Fits) if !estimate.usable.is_some_and(close) => Self::Fits,
            Some(Fit::Fits | Fit::Probably) => Self::Tight,
            Some(Fit::ProbablyNot | Fit::No) => Self::No,
            None => Self::Unknown,
        }
    }
}

/// One GPU of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub gpu: &'static Gpu,
    pub verdict: GpuVerdict,
    /// For the run as it is.
    pub device: Option<Band>,
    pub usable: Option<Bytes>,
    /// The largest micro-batch that fits and keeps the effective batch.
    pub micro_batch: Option<u64>,
    /// The step time of the effective batch with that micro-batch.
    pub time: Option<Span>,
    /// Why it cannot run there; empty if it can.
    pub problem: String,
}

/// The sort key of rows; rows without it come last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    Name,
    /// The smallest GPU first.
    #[default]
    Memory,
    Verdict,
    /// The largest first.
    MicroBatch,
    /// The fastest first.
    Time,
}

impl SortBy {
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Memory, "memory"),
        (Self::Name, "name"),
        (Self::Verdict, "verdict"),
        (Self::MicroBatch, "micro-batch"),
        (Self::Time, "time"),
    ];

    pub fn from_id(id: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, name)| *name == id);
        found.map(|(by, _)| *by)
    }
}

/// The table, in the order of the catalogue.
pub fn gpus(scenario: &Scenario) -> Vec<Row> {
    let mut peaks = Peaks::default();
    let row = |gpu| row(scenario, gpu, &mut peaks);
    catalog::gpus().iter().map(row).collect()
}

/// The rows in another order.
pub fn sort(rows: Vec<Row>, by: SortBy) -> Vec<Row> {
    let last = |ordering: Ordering, known: [bool; 2]| match known {
        [true, false] => Ordering::Less,
        [false, true] => Ordering::Greater,
        _ => ordering,
    };
    sorted(rows, |a, b| match by {
        SortBy::Name => a.gpu.id.cmp(b.gpu.id),
        SortBy::Memory => last(
            a.usable.cmp(&b.usable),
            [a.usable.is_some(), b.usable.is_some()],
        ),
        SortBy::Verdict => a.verdict.cmp(&b.verdict),
        SortBy::MicroBatch => b.micro_batch.cmp(&a.micro_batch),
        SortBy::Time => {
            let seconds = |row: &Row| row.time.map_or(0.0, |time| time.expected.get());
            let ordering = seconds(a).total_cmp(&seconds(b));
            last(ordering, [a.time.is_some(), b.time.is_some()])
        }
    })
}

fn row(scenario: &Scenario, gpu: &'static Gpu, peaks: &mut Peaks) -> Row {
    let scenario = on(scenario, gpu);
    let mut row = Row {
        gpu,
        verdict: GpuVerdict::Unknown,
        device: None,
        usable: None,
        micro_batch: None,
        time: None,
        problem: String::new(),
    };
    if let Some(problem) = scenario.check().first() {
        row.problem = problem.to_string();
        return row;
    }
    let whole = match estimate(&scenario) {
        Ok(whole) => whole,
        Err(problem) => {
            row.problem = problem.to_string();
            return row;
        }
    };
    row.verdict = GpuVerdict::of(&whole);
    row.device = Some(whole.device);
    row.usable = whole.usable;
    row.micro_batch = peaks.largest(&scenario, gpu, &whole);
    let run = row.micro_batch.map(|size| with_batch(&scenario, size));
    let time = run.and_then(|run| Prediction::new(run).step_time().ok());
    row.time = time.map(|time| time.step);
    row
}

/// Allocated peaks by micro-batch, shared by many GPUs: they depend only on compute capability and the number of SMs.
#[derive(Debug, Default)]
struct Peaks(Vec<(Machine, u64, Bytes)>);

type Machine = (Option<(u8, u8)>, u64);

impl Peaks {
    fn largest(&mut self, scenario: &Scenario, gpu: &Gpu, whole: &Estimate) -> Option<u64> {
        let goal = Goal::default();
        let besides = whole.device.expected - whole.reserved.expected;
        let allowance = whole.usable? - besides;
        let sizes = all(scenario);
        let from = first_that_fits(&sizes, |size| {
            Ok::<_, ()>(
                self.at(scenario, gpu, size)
                    .is_some_and(|peak| peak <= allowance),
            )
        });
        let from = from.ok().flatten()?;
        // Memory that the allocator holds beyond what it hands out is only in a full estimate.
        let mut rest = sizes.iter().filter(|size| **size <= from);
        rest.find(|size| {
            estimate(&with_batch(scenario, **size)).is_ok_and(|estimate| goal.met(&estimate))
        })
        .copied()
    }

    fn at(&mut self, scenario: &Scenario, gpu: &Gpu, size: u64) -> Option<Bytes> {
        let machine = (
            gpu.compute_capability,
            gpu.sms.get().map_or(0, |sms| sms as u64),
        );
        let known = self
            .0
            .iter()
            .find(|known| known.0 == machine && known.1 == size);
        if let Some((_, _, peak)) = known {
            return Some(*peak);
        }
        let peak = quick_peak(&with_batch(scenario, size)).ok()?;
        self.0.push((machine, size, peak));
        Some(peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_has_a_row_and_larger_ones_fit_larger_batches() {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 2), ("vocab".to_string(), 8000)].into();
        scenario.data.micro_batch = 64;
        let rows = gpus(&scenario);
        assert_eq!(rows.len(), catalog::gpus().len());
        for row in &rows {
            let fits = matches!(row.verdict, GpuVerdict::Fits | GpuVerdict::Tight);
            assert_eq!(fits, row.micro_batch == Some(64), "{}", row.gpu.id);
            if let Some(size) = row.micro_batch {
                let run = with_batch(&on(&scenario, row.gpu), size);
                assert_eq!(estimate(&run).unwrap().fits, Some(true), "{}", row.gpu.id);
                assert_eq!(run.effective_batch(), scenario.effective_batch());
            }
            assert_eq!(row.problem.is_empty(), row.device.is_some());
        }
        let old = rows.iter().find(|row| row.gpu.id == "t4-16gb").unwrap();
        assert_eq!(old.verdict, GpuVerdict::Unknown);
        assert!(old.problem.contains("bf16"), "{}", old.problem);
        for by in SortBy::ALL {
            assert_eq!(SortBy::from_id(by.1), Some(by.0));
            assert_eq!(sort(rows.clone(), by.0).len(), rows.len());
        }
        let fastest = sort(rows, SortBy::Time);
        let seconds = |row: &Row| row.time.map(|time| time.expected.get());
        let known: Vec<f64> = fastest.iter().map_while(seconds).collect();
        assert!(known.len() > 80 && known.is_sorted(), "{}", known.len());
        assert!(fastest[known.len()..].iter().all(|row| row.time.is_none()));
    }
}
