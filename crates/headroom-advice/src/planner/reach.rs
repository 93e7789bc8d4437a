//! How far a run can go: the largest batch or length over which some plan fits, and the smallest GPUs.

use super::choose;
use super::edit::Edit;
use super::evaluate::{Evaluator, with};
use super::explore::Exploration;
use super::space::Space;
use super::{Locks, Plan, Plans, fastest_plan, plan};
use crate::bisection::largest;
use crate::cards::{CARDS, Card};
use crate::solve::on;
use headroom_catalog as catalog;
use headroom_core::estimate::Unsupported;
use headroom_scenario::{Hardware, Scenario, systems};

/// What is made as large as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Samples on one GPU at once.
    Batch,
    /// Tokens of a sample.
    Length,
}

impl Reach {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Batch => "micro-batch",
            Self::Length => "sequence length",
        }
    }

    fn with(self, run: &Scenario, value: u64) -> Scenario {
        let mut changed = run.clone();
        match self {
            Self::Batch => {
                changed.data.micro_batch = value;
                changed.training.accumulation = 1;
            }
            Self::Length => changed.set_row_length(value),
        }
        changed
    }

    fn value(self, run: &Scenario) -> u64 {
        match self {
            Self::Batch => run.data.micro_batch,
            Self::Length => run.row_length(),
        }
    }

    /// Lengths stay multiples that kernels and rings of GPUs like.
    const fn unit(self) -> u64 {
        match self {
            Self::Batch => 1,
            Self::Length => 128,
        }
    }
}

/// The largest value over which some plan fits, and the plans there.
#[derive(Clone, Debug)]
pub struct Reached {
    pub value: u64,
    pub plans: Plans,
}

/// The largest value; `None` if none fits.
pub fn reach(run: &Scenario, what: Reach, locks: &Locks) -> Result<Option<Reached>, Unsupported> {
    /// Beyond what anyone trains with.
    const MOST: u64 = 1 << 20;
    let edits = frugal(run, locks);
    let unit = what.unit();
    let fits = |count: u64| {
        let changed = what.with(run, count.saturating_mul(unit));
        if !changed.check().is_empty() {
            return Ok(false);
        }
        // The samples of an update go through one GPU at once.
        let size = changed.data.micro_batch;
        let once = match what {
            Reach::Batch => size,
            Reach::Length => 1,
        };
        let mut evaluator = Evaluator::new(Space::new(&changed, locks.clone()));
        let edits = with(&edits, Edit::MicroBatch(once));
        Ok::<_, Unsupported>(choose::verified(&mut evaluator, &edits).is_some())
    };
    let now = (what.value(run) / unit).max(1);
    // The predictions are no more exact than a hundredth.
    let found = largest(now, MOST / unit, |low| low / 100, fits)?;
    if found == 0 {
        return Ok(None);
    }
    let value = found * unit;
    let plans = plan(&what.with(run, value), locks.clone())?;
    Ok(Some(Reached { value, plans }))
}

/// The edits that save most of a sample.
fn frugal(run: &Scenario, locks: &Locks) -> Vec<Edit> {
    let mut evaluator = Evaluator::new(Space::new(run, locks.clone()));
    let mut exploration = Exploration::new(&evaluator, &[]);
    while !exploration.is_done() {
        exploration.step(&mut evaluator);
    }
    let frugal = exploration.frugal();
    frugal.map_or_else(Vec::new, |network| network.edits.clone())
}

/// A plan on some GPUs.
#[derive(Clone, Debug)]
pub struct OnCards {
    pub gpu: &'static str,
    pub gpus: u32,
    pub plan: Plan,
}

/// The smallest GPU on which some plan fits, of each number of them; a row that needs more of the same GPU, or larger ones, than
/// another is left out.
pub fn cards(run: &Scenario, locks: &Locks) -> Vec<OnCards> {
    const COUNTS: [u32; 4] = [1, 2, 4, 8];
    let mut rows: Vec<OnCards> = Vec::new();
    let mut smallest = usize::MAX;
    for gpus in COUNTS {
        let sizes: Vec<&Card> = CARDS.iter().rev().collect();
        // What a GPU can do, a larger one can: bisection.
        let (mut low, mut high) = (0, sizes.len().min(smallest));
        let mut best = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let found = sizes
                .get(middle)
                .and_then(|card| on_cards(run, card, gpus, locks));
            match found {
                Some(found) => {
                    best = Some((middle, found));
                    high = middle;
                }
                None => low = middle + 1,
            }
        }
        if let Some((place, found)) = best {
            smallest = place;
            rows.push(found);
        }
    }
    rows
}

fn on_cards(run: &Scenario, card: &Card, gpus: u32, locks: &Locks) -> Option<OnCards> {
    let gpu = catalog::gpu(card.gpu)?;
    let samples = run.effective_batch().max(u64::from(gpus));
    let mut changed = on(run, gpu);
    changed.hardware.gpus = gpus;
    changed.hardware.nodes = 1;
    let replicas = changed.replicas().max(1);
    if !samples.is_multiple_of(replicas) {
        return None;
    }
    changed.data.micro_batch = samples / replicas;
    changed.training.accumulation = 1;
    if !changed.check().is_empty() || !systems::follows(run, &changed) {
        return None;
    }
    Some(OnCards {
        gpu: gpu.id,
        gpus,
        plan: fastest_plan(&changed, locks.clone())?,
    })
}

/// The run on so many GPUs of its kind, with as many to a machine as now or eight, and at least one sample of an update for
/// each; `None` if they cannot share the samples.
pub fn on_gpus(run: &Scenario, gpus: u32) -> Option<Scenario> {
    let mut changed = run.clone();
    let hardware = &mut changed.hardware;
    let each = match hardware.nodes {
        0 | 1 => Hardware::ON_A_MACHINE,
        _ => hardware.gpus_of_a_machine(),
    };
    hardware.gpus = gpus.max(1);
    hardware.nodes = hardware.gpus.div_ceil(each.max(1));
    if hardware.gpus == run.hardware.gpus {
        return Some(changed);
    }
    let samples = run.effective_batch().max(u64::from(gpus));
    let replicas = changed.replicas().max(1);
    changed.data.micro_batch = samples / replicas;
    changed.training.accumulation = 1;
    let possible = samples.is_multiple_of(replicas) && changed.check().is_empty();
    possible.then_some(changed)
}

/// The fewest GPUs on which some plan fits, among powers of two up to this number, with the fastest plan there.
pub fn fewest_gpus(run: &Scenario, most: u32, locks: &Locks) -> Option<Plan> {
    // Upwards: the spaces of few GPUs are small.
    let counts = (0..=most.max(1).ilog2()).map(|exponent| 1 << exponent);
    let mut plans = counts.filter_map(|gpus| fastest_plan(&on_gpus(run, gpus)?, locks.clone()));
    plans.next()
}
