//! Memory against one setting: computed by the worker, one estimate at a time, and parsed on the page.

use crate::shared::worker::{JobKind, Work};
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Estimate, estimate};
use headroom_scenario::Scenario;
use headroom_scenario::settings::{self, Setting, Value, ValueType};

/// The worker's job: its limits are the path of the setting.
pub const KIND: JobKind = JobKind {
    id: "sweep",
    start: |scenario, path| Box::new(Sweeper::new(scenario, path)),
};

/// The state of the curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    pub points: Vec<(u64, Band)>,
    pub now: u64,
    pub usable: Option<Bytes>,
    pub largest: Largest,
}

/// The largest value that fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Largest {
    #[default]
    NotYetKnown,
    /// Not even the smallest value fits.
    Nothing,
    Value(u64),
}

impl Curve {
    /// A line with the current value, the GPU's memory and the largest value that fits, then one for each point.
    fn write(&self) -> Vec<String> {
        let usable = self.usable.map(|bytes| bytes.get().to_string());
        let largest = match self.largest {
            Largest::NotYetKnown => String::new(),
            Largest::Nothing => "none".into(),
            Largest::Value(value) => value.to_string(),
        };
        let head = format!("{} {} {largest}", self.now, usable.unwrap_or_default());
        let point = |(value, band): &(u64, Band)| {
            let [low, expected, high] = [band.low, band.expected, band.high].map(Bytes::get);
            format!("{value} {low} {expected} {high}")
        };
        [head]
            .into_iter()
            .chain(self.points.iter().map(point))
            .collect()
    }

    /// Parses the worker's reply; `None` until the points are known.
    pub fn read(lines: &[String]) -> Option<Self> {
        let (head, points) = lines.split_first()?;
        let mut head = head.split(' ');
        let now = head.next()?.parse().ok()?;
        let usable = head.next()?.parse().ok().map(Bytes::new);
        let largest = match head.next()? {
            "" => Largest::NotYetKnown,
            "none" => Largest::Nothing,
            value => Largest::Value(value.parse().ok()?),
        };
        let point = |line: &String| {
            let mut numbers = line.split(' ').filter_map(|number| number.parse().ok());
            let value = numbers.next()?;
            let mut bytes = numbers.map(Bytes::new);
            let band = Band {
                low: bytes.next()?,
                expected: bytes.next()?,
                high: bytes.next()?,
            };
            Some((value, band))
        };
        Some(Self {
            points: points.iter().filter_map(point).collect(),
            now,
            usable,
            largest,
        })
    }
}

fn range(setting: &Setting) -> (u64, u64) {
    match setting.value_type {
        ValueType::Whole { low, high } => (low, high),
        _ => (0, 0),
    }
}

/// Evenly spaced values from zero to twice the current one.
fn values(setting: &Setting, now: u64) -> Vec<u64> {
    const POINTS: u64 = 12;
    let (low, high) = range(setting);
    let end = now.saturating_mul(2).max(POINTS);
    let values = (1..=POINTS)
        .map(|point| (u128::from(end) * u128::from(point) / u128::from(POINTS)) as u64)
        .chain([now])
        .map(|value| value.clamp(low, high));
    let mut values = sorted(values, u64::cmp);
    values.dedup();
    values
}

fn with(setting: &'static Setting, scenario: &Scenario, value: u64) -> Option<Estimate> {
    let mut scenario = scenario.clone();
    setting.set(&mut scenario, &value.to_string()).ok()?;
    estimate(&scenario).ok()
}

/// A search for the largest value that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    fits: u64,
    fails: Option<u64>,
    most: u64,
}

impl Search {
    fn new((low, most): (u64, u64)) -> Self {
        let fits = low.saturating_sub(1);
        Self {
            fits,
            fails: None,
            most,
        }
    }

    /// The next value to try, or `None` once the answer is known.
    fn next(self) -> Option<u64> {
        let next = match self.fails {
            None => self
                .fits
                .saturating_mul(2)
                .max(self.fits + 1)
                .min(self.most),
            Some(fails) => self.fits + (fails - self.fits) / 2,
        };
        (next > self.fits).then_some(next)
    }

    fn record(&mut self, value: u64, fits: bool) {
        if fits {
            self.fits = value;
        } else {
            self.fails = Some(value);
        }
    }
}

/// The job: the points first, then the search.
struct Sweeper {
    /// `None` if there is nothing to sweep.
    setting: Option<&'static Setting>,
    scenario: Scenario,
    curve: Curve,
    /// The values of the remaining points, a stack.
    waiting: Vec<u64>,
    search: Search,
}

impl Sweeper {
    fn new(scenario: &Scenario, path: &str) -> Self {
        let setting = settings::find(path).filter(|setting| setting.applies(scenario));
        let now = setting.and_then(|setting| match setting.value(scenario) {
            Value::Whole(now) => Some((setting, now)),
            _ => None,
        });
        let mut waiting = now.map_or(Vec::new(), |(setting, now)| values(setting, now));
        waiting.reverse();
        Self {
            setting: now.map(|(setting, _)| setting),
            scenario: scenario.clone(),
            curve: Curve {
                now: now.map_or(0, |(_, now)| now),
                ..Curve::default()
            },
            waiting,
            search: Search::new(setting.map_or((0, 0), range)),
        }
    }

    /// The result of the search.
    fn found(&self, setting: &Setting) -> Largest {
        match self.search.fits {
            fits if fits >= range(setting).0 => Largest::Value(fits),
            _ => Largest::Nothing,
        }
    }
}

impl Work for Sweeper {
    fn is_done(&self) -> bool {
        let nothing_fits_or_not = self.curve.usable.is_none();
        let over = nothing_fits_or_not || self.curve.largest != Largest::NotYetKnown;
        self.setting.is_none() || self.waiting.is_empty() && over
    }

    fn step(&mut self) {
        let Some(setting) = self.setting else {
            return;
        };
        if let Some(value) = self.waiting.pop() {
            if let Some(estimate) = with(setting, &self.scenario, value) {
                self.curve.usable = estimate.usable;
                self.curve.points.push((value, estimate.device));
            }
        } else if let Some(value) = self.search.next() {
            let found = with(setting, &self.scenario, value);
            let fits = found.is_some_and(|estimate| estimate.fits == Some(true));
            self.search.record(value, fits);
        } else {
            self.curve.largest = self.found(setting);
        }
    }

    /// Empty until all points are known: a growing curve would shift the layout.
    fn lines(&self) -> Vec<String> {
        if self.setting.is_some() && self.waiting.is_empty() {
            self.curve.write()
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    #[test]
    fn the_search_finds_the_largest_that_fits() {
        for largest in [0, 1, 2, 3, 7, 8, 100, 4095, 5000] {
            let mut search = Search::new((1, 5000));
            let mut tries = 0;
            while let Some(value) = search.next() {
                assert!((1..=5000).contains(&value));
                search.record(value, value <= largest);
                tries += 1;
            }
            assert_eq!(search.fits, largest);
            assert!(tries < 30, "{tries}");
        }
    }

    #[test]
    fn values_include_the_current_one_and_stay_in_range() {
        let batch = settings::find("data.micro_batch").unwrap();
        let check = |now, expected: &[u64]| assert_eq!(values(batch, now), expected);
        check(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        check(24, &[4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48]);
        for now in [1, 5, 13, 999, 1_000_000] {
            let all = values(batch, now);
            assert!(all.contains(&now) && all.iter().all(|value| (1..=1_000_000).contains(value)));
            assert!(all.len() <= 13);
        }
    }

    #[test]
    fn the_worker_sends_the_complete_curve_and_then_the_largest_value() {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        let check = |memory_mib, expected: fn(Largest) -> bool| {
            let mut scenario = scenario.clone();
            scenario.hardware.memory_mib = NonZero::new(memory_mib);
            let mut work = Sweeper::new(&scenario, "data.micro_batch");
            let mut said = Vec::new();
            while !work.is_done() {
                work.step();
                said.push(Curve::read(&work.lines()));
            }
            let whole = said.iter().position(Option::is_some);
            assert_eq!(
                whole,
                Some(values(settings::find("data.micro_batch").unwrap(), 8).len() - 1)
            );
            let last = said.pop().flatten().unwrap();
            assert_eq!(last, work.curve);
            assert!(expected(last.largest), "{:?}", last.largest);
        };
        check(1500, |largest| matches!(largest, Largest::Value(8..)));
        check(100, |largest| largest == Largest::Nothing);
        assert!(Sweeper::new(&scenario, "no.such").is_done());
    }
}
