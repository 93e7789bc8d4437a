//! Solvers: the largest value that fits. Each is a bisection over full estimates, for any number of a scenario or dimension
//! of its model in which memory is monotonic.

use super::goal::Goal;
use super::tiers::largest as largest_batch;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_catalog as catalog;
use headroom_core::estimate::{Estimate, Unsupported, estimate};
use headroom_scenario::{Case, Checkpointing, Scenario, settings};

/// What is solved for.
#[derive(Clone, Debug)]
pub enum SolveFor {
    /// An integer setting of the scenario, by its path or link key.
    Setting(&'static settings::Setting),
    /// A dimension of the model, such as `img`, `peaks` or `layers`.
    Dim(String),
}

/// How memory changes as the number rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    Rising,
    Falling,
    /// Not at all, for the values tried.
    Level,
}

/// A solution.
#[derive(Clone, Debug)]
pub struct Solved {
    pub slope: Slope,
    /// The largest value that fits (the smallest, if memory falls with it); `None` if none does.
    pub value: Option<u64>,
    /// The run with it, or with the value that needs the least.
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// The next value and its estimate, if there is one.
    pub next: Option<(u64, Estimate)>,
    /// Beyond this value memory is constant: the network uses no more of it.
    pub saturated: bool,
}

impl SolveFor {
    /// By a setting's path or link key, else a dimension of the scenario's model.
    pub fn named(name: &str, scenario: &Scenario) -> Option<Self> {
        let setting = settings::find(name).or_else(|| settings::by_key(name));
        if let Some(setting) = setting {
            let whole = matches!(setting.value_type, settings::ValueType::Whole { .. });
            return whole.then_some(Self::Setting(setting));
        }
        let known = scenario.model.dim(name).is_some();
        known.then(|| Self::Dim(name.into()))
    }

    /// Its valid values.
    fn range(&self) -> (u64, u64) {
        match self {
            Self::Setting(setting) => match setting.value_type {
                settings::ValueType::Whole { low, high } => (low, high),
                _ => (1, 1),
            },
            Self::Dim(_) => (1, settings::LARGEST_SIZE),
        }
    }

    /// Its value in this scenario.
    pub fn value(&self, scenario: &Scenario) -> u64 {
        match self {
            Self::Setting(setting) => match setting.value(scenario) {
                settings::Value::Whole(value) => value,
                _ => 0,
            },
            Self::Dim(name) => scenario.model.dim(name).unwrap_or(0),
        }
    }

    /// The scenario with another value.
    pub fn with(&self, scenario: &Scenario, value: u64) -> Scenario {
        let mut changed = scenario.clone();
        match self {
            Self::Setting(setting) => {
                // Values in the range are always accepted.
                let _ = setting.set(&mut changed, &value.to_string());
            }
            Self::Dim(name) => {
                changed.model.dims.insert(name.clone(), value);
            }
        }
        changed
    }
}

/// Finds the largest value, in steps of `multiple`, that meets the goal; the smallest if memory falls with it. Invalid
/// values (such as heads that do not divide the width) count as not fitting.
pub fn solve(
    scenario: &Scenario,
    unknown: &SolveFor,
    goal: Goal,
    multiple: u64,
) -> Result<Solved, Unsupported> {
    let start = estimate(scenario)?;
    if start.usable.is_none() {
        return Err(Unsupported::UnknownMemory);
    }
    let multiple = multiple.max(1);
    let (low, high) = unknown.range();
    let (first, last) = (low.div_ceil(multiple).max(1), (high / multiple).max(1));
    let at = |place: u64| estimate(&unknown.with(scenario, place.saturating_mul(multiple)));
    let meets = |place: u64| at(place).is_ok_and(|estimate| goal.met(&estimate));
    let here = (unknown.value(scenario) / multiple).clamp(first, last);
    let slope = slope(&at, here, first, last);
    let found = match slope {
        Slope::Rising => last_of(first, last, meets),
        Slope::Falling => first_of(first, last, meets),
        Slope::Level => meets(here).then_some(here),
    };
    let needs = |place: u64| at(place).ok().map(|found| found.allocated.expected);
    let top = (slope == Slope::Rising && found == Some(last)).then(|| needs(last));
    let enough = top.and_then(|top| first_of(first, last, |place| needs(place) == top));
    let saturated = enough.is_some_and(|enough| enough < last);
    let found = enough.or(found);
    let shown = found.unwrap_or(if slope == Slope::Falling { last } else { first });
    let scenario_found = unknown.with(scenario, shown.saturating_mul(multiple));
    let next = found.filter(|_| !saturated).and_then(|place| match slope {
        Slope::Rising if place < last => Some(place + 1),
        Slope::Falling if place > first => Some(place - 1),
        _ => None,
    });
    Ok(Solved {
        slope,
        value: found.map(|place| place.saturating_mul(multiple)),
        estimate: estimate(&scenario_found)?,
        scenario: scenario_found,
        next: next.and_then(|place| Some((place.saturating_mul(multiple), at(place).ok()?))),
        saturated,
    })
}

/// Whether doubling or halving the value needs more or less.
fn slope(
    at: &impl Fn(u64) -> Result<Estimate, Unsupported>,
    here: u64,
    first: u64,
    last: u64,
) -> Slope {
    let needs = |place: u64| at(place).ok().map(|estimate| estimate.allocated.expected);
    let Some(now) = needs(here) else {
        return Slope::Rising;
    };
    let far = [
        here.saturating_mul(2),
        here.saturating_mul(16),
        here + 1,
        last.min(here.saturating_mul(1024)),
    ];
    for more in far
        .into_iter()
        .filter(|place| (first..=last).contains(place) && *place > here)
    {
        match needs(more) {
            Some(then) if then > now => return Slope::Rising,
            Some(then) if then < now => return Slope::Falling,
            _ => {}
        }
    }
    for less in [here / 2, here / 16, first]
        .into_iter()
        .filter(|place| (first..here).contains(place))
    {
        match needs(less) {
            Some(then) if then < now => return Slope::Rising,
            Some(then) if then > now => return Slope::Falling,
            _ => {}
        }
    }
    Slope::Level
}

/// The last index that satisfies the predicate, if all before it do; by doubling and bisection.
pub(super) fn last_of(first: u64, last: u64, meets: impl Fn(u64) -> bool) -> Option<u64> {
    if !meets(first) {
        return None;
    }
    let (mut low, mut step) = (first, 1_u64);
    let mut high = loop {
        let next = low.saturating_add(step).min(last);
        if next == low {
            return Some(low);
        }
        if meets(next) {
            low = next;
            step = step.saturating_mul(2);
        } else {
            break next;
        }
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if meets(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// The first index that satisfies the predicate, if all after it do.
fn first_of(first: u64, last: u64, meets: impl Fn(u64) -> bool) -> Option<u64> {
    let mirrored = last_of(0, last - first, |back| meets(last - back))?;
    Some(last - mirrored)
}

/// The smallest GPU of the catalogue that fits the run as it is, of the same vendor if the run's GPU is listed.
pub fn smallest_gpu(scenario: &Scenario, goal: Goal) -> Option<(&'static catalog::Gpu, Estimate)> {
    let vendor = Case::of(scenario).gpu.map(|gpu| gpu.vendor);
    let of_vendor = catalog::gpus()
        .iter()
        .filter(|gpu| !gpu.is_slice() && vendor.is_none_or(|vendor| gpu.vendor == vendor));
    let usable = |gpu: &catalog::Gpu| gpu.usable_bytes(scenario.hardware.os).unwrap_or(Bytes::MAX);
    sorted(of_vendor, |a, b| usable(a).cmp(&usable(b)))
        .into_iter()
        .find_map(|gpu| {
            let changed = on(scenario, gpu);
            let fine = changed.check().is_empty();
            let estimate = estimate(&changed).ok().filter(|_| fine)?;
            goal.met(&estimate).then_some((gpu, estimate))
        })
}

/// The run on another GPU of the catalogue.
pub fn on(scenario: &Scenario, gpu: &catalog::Gpu) -> Scenario {
    let mut changed = scenario.clone();
    let hardware = &mut changed.hardware;
    hardware.gpu = gpu.id.into();
    hardware.memory_mib = None;
    hardware.capability = None;
    hardware.bandwidth = None;
    hardware.tflops = None;
    changed
}

/// The fewest GPUs on which the run meets the goal with the same effective batch, which is divided among them.
pub fn fewest_gpus(scenario: &Scenario, goal: Goal) -> Result<Option<Scenario>, Unsupported> {
    const MOST: u32 = 1024;
    let samples = scenario.effective_batch();
    let mut count = 1;
    while count <= MOST {
        let mut changed = scenario.clone();
        changed.hardware.gpus = count;
        let replicas = changed.replicas();
        if samples.is_multiple_of(replicas) {
            changed.data.micro_batch = samples / replicas;
            changed.training.accumulation = 1;
            let possible = changed.check().is_empty();
            let found = if possible {
                largest_batch(&changed, &estimate(&changed)?, goal)?
            } else {
                None
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        count *= 2;
    }
    Ok(None)
}

/// How to reach an effective batch.
#[derive(Clone, Debug)]
pub struct Accumulated {
    pub wanted: u64,
    /// The run with the largest micro-batch that fits, or `None` if not even one sample does.
    pub scenario: Option<Scenario>,
    /// The resulting number of samples.
    pub samples: u64,
}

impl Accumulated {
    /// Exactly the wanted batch.
    pub fn is_exact(&self) -> bool {
        self.scenario.is_some() && self.samples == self.wanted
    }
}

/// The largest micro-batch that fits with the accumulation for exactly the wanted batch; if the number of GPUs does not
/// divide it, for the nearest one.
pub fn accumulate(
    scenario: &Scenario,
    wanted: u64,
    goal: Goal,
) -> Result<Accumulated, Unsupported> {
    let replicas = scenario.replicas().max(1);
    let below = (wanted / replicas).max(1);
    let off = |each: u64| each.saturating_mul(replicas).abs_diff(wanted);
    let each = if off(below + 1) < off(below) {
        below + 1
    } else {
        below
    };
    let mut whole = scenario.clone();
    // All at once: one sample at a time may be too many passes to simulate.
    whole.data.micro_batch = each;
    whole.training.accumulation = 1;
    let found = largest_batch(&whole, &estimate(&whole)?, goal)?;
    Ok(Accumulated {
        wanted,
        samples: found.as_ref().map_or(0, Scenario::effective_batch),
        scenario: found,
    })
}

/// The fewest layers to checkpoint: none, or every n-th; `None` if checkpointing all is not enough.
pub fn checkpointing(scenario: &Scenario, goal: Goal) -> Result<Option<Scenario>, Unsupported> {
    let mut none = scenario.clone();
    none.training.checkpointing = Checkpointing::None;
    if goal.met(&estimate(&none)?) {
        return Ok(Some(none));
    }
    let layers = scenario.model.dim("layers");
    let with = |every: u64| {
        let mut changed = scenario.clone();
        changed.training.use_cache = false;
        changed.training.checkpointing = Checkpointing::Layers;
        changed.training.checkpoint_every = every;
        changed
    };
    let meets = |every: u64| estimate(&with(every)).is_ok_and(|estimate| goal.met(&estimate));
    Ok(last_of(1, layers.unwrap_or(1).max(1), meets).map(with))
}
