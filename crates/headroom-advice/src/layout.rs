//! Parallelism layouts of a number of GPUs, within the constraints of a run's model, batch and machines.

use std::num::NonZero;

use super::goal::Goal;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::time::Span;
use headroom_core::estimate::{Estimate, Unsupported, estimate, quick_step};
use headroom_scenario::{Checkpointing, Hardware, Parallelism, Scenario, Schedule};

/// A layout with its full estimate.
#[derive(Clone, Debug)]
pub struct Layout {
    pub scenario: Scenario,
    pub estimate: Estimate,
    pub time: Span,
    pub fits: bool,
}

/// The result of a search over layouts.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    /// The fastest that fits.
    pub best: Option<Layout>,
    /// The Pareto front of time and memory, the fastest first.
    pub front: Vec<Layout>,
    /// The fewest GPUs that can train it, and how; among powers of two up to the run's number.
    pub fewest: Option<Layout>,
    /// Layouts that were simulated, that need too much, and that are invalid or not modelled.
    pub tried: u64,
    pub too_large: u64,
    pub left_out: u64,
}

/// A point of the search.
#[derive(Debug)]
struct Point {
    scenario: Scenario,
    peak: Bytes,
    time: Span,
}

/// Searches all layouts of a run on `gpus` GPUs.
pub fn layouts(scenario: &Scenario, gpus: u32, goal: Goal) -> Result<Layouts, Unsupported> {
    let mut search = LayoutSearch::new(scenario, gpus, goal)?;
    while !search.is_done() {
        search.step()?;
    }
    Ok(search.found)
}

/// An incremental search over layouts.
#[derive(Debug)]
pub struct LayoutSearch {
    base: Scenario,
    goal: Goal,
    search: Search,
    /// ParallelDegrees still to be explored.
    waiting: Vec<ParallelDegrees>,
    found: Layouts,
    is_done: bool,
}

impl LayoutSearch {
    pub fn new(scenario: &Scenario, gpus: u32, goal: Goal) -> Result<Self, Unsupported> {
        let base = on(scenario, gpus);
        let mut waiting = meshes(&base);
        waiting.reverse();
        Ok(Self {
            search: Search::new(&base, goal)?,
            base,
            goal,
            waiting,
            found: Layouts::default(),
            is_done: false,
        })
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The result, once done; until then the number of simulated layouts.
    pub fn found(&self) -> &Layouts {
        &self.found
    }

    /// Simulates one set of degrees, or finishes the search.
    pub fn step(&mut self) -> Result<(), Unsupported> {
        match self.waiting.pop() {
            Some(degrees) => self.search.follow(&self.base, &degrees)?,
            None => self.finish()?,
        }
        self.found.tried = self.search.tried;
        self.found.too_large = self.search.too_large;
        self.found.left_out = self.search.left_out;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Unsupported> {
        /// Front points that are estimated in full.
        const SHOWN: usize = 12;
        let goal = self.goal;
        let points = sorted(std::mem::take(&mut self.search.points), |a, b| {
            a.time.expected.get().total_cmp(&b.time.expected.get())
        });
        let found = &mut self.found;
        let mut lowest = None;
        for point in points {
            if lowest.is_some_and(|lowest| point.peak >= lowest) || found.front.len() >= SHOWN {
                continue;
            }
            lowest = Some(point.peak);
            let layout = in_full(point.scenario, point.time, goal)?;
            if found.best.is_none() && layout.fits {
                found.best = Some(layout.clone());
            }
            found.front.push(layout);
        }
        found.fewest = fewest(&self.base, goal, self.search.allowance)?;
        self.is_done = true;
        Ok(())
    }
}

/// The smallest power-of-two number of GPUs, up to the run's, on which some layout fits.
fn fewest(
    scenario: &Scenario,
    goal: Goal,
    allowance: Bytes,
) -> Result<Option<Layout>, Unsupported> {
    let mut gpus = 1;
    while gpus <= scenario.hardware.gpus {
        let mut base = on(scenario, gpus);
        base.training.checkpointing = Checkpointing::Layers;
        let mut search = Search::of(allowance);
        for mesh in meshes(&base) {
            // The first shards most: if it needs too much, so do the others.
            for strategy in strategies(&base, &mesh).into_iter().take(1) {
                let Some(small) =
                    arranged(&base, &mesh, strategy).and_then(|layout| batched(&layout, 1))
                else {
                    continue;
                };
                let Some(point) = search.run(small)? else {
                    continue;
                };
                let layout = in_full(point.scenario, point.time, goal)?;
                if layout.fits {
                    return Ok(Some(layout));
                }
            }
        }
        gpus = gpus.saturating_mul(2);
    }
    Ok(None)
}

fn in_full(scenario: Scenario, time: Span, goal: Goal) -> Result<Layout, Unsupported> {
    let estimate = estimate(&scenario)?;
    Ok(Layout {
        fits: goal.met(&estimate),
        scenario,
        estimate,
        time,
    })
}

/// The run on `gpus` GPUs, with as many per machine as now, or eight.
fn on(scenario: &Scenario, gpus: u32) -> Scenario {
    let mut base = scenario.clone();
    let hardware = &mut base.hardware;
    let each = match hardware.nodes {
        0 | 1 => Hardware::ON_A_MACHINE,
        _ => hardware.gpus_of_a_machine(),
    };
    hardware.gpus = gpus.max(1);
    hardware.nodes = hardware.gpus.div_ceil(each);
    let present = scenario.effective_batch().max(u64::from(gpus));
    base.data.global_batch = base.data.global_batch.or(NonZero::new(present));
    base
}

/// The degrees of a layout; the remaining factor is data parallelism.
#[derive(Clone, Copy, Debug)]
struct ParallelDegrees {
    tp: u32,
    pp: u32,
    cp: u32,
}

/// Powers of two that divide this number.
fn powers(of: u32) -> impl Iterator<Item = u32> {
    (0..=of.trailing_zeros().min(10)).map(|exponent| 1 << exponent)
}

/// ParallelDegrees that the GPUs and the model allow: tensor parallelism stays within a machine.
fn meshes(base: &Scenario) -> Vec<ParallelDegrees> {
    let hardware = &base.hardware;
    let gpus = hardware.gpus.max(1);
    let machine = gpus / hardware.nodes.max(1);
    let layers = base.model.dim("layers").unwrap_or(1);
    let mut all = Vec::new();
    for tp in powers(gpus).filter(|tp| *tp <= machine) {
        for pp in powers(gpus / tp).filter(|pp| u64::from(*pp) <= layers) {
            let longest = base.data.sequence / 2048;
            for cp in powers(gpus / tp / pp).filter(|cp| *cp == 1 || u64::from(*cp) <= longest) {
                all.push(ParallelDegrees { tp, pp, cp });
            }
        }
    }
    all
}

/// The strategies for the data-parallel dimension, the one with the least memory first.
fn strategies(base: &Scenario, degrees: &ParallelDegrees) -> Vec<(Parallelism, bool)> {
    let shared = degrees.tp * degrees.pp * degrees.cp;
    let copies = base.hardware.gpus / shared.max(1);
    if copies.saturating_mul(degrees.cp) < 2 {
        return vec![(Parallelism::Ddp, true)];
    }
    let mut all = vec![(Parallelism::Fsdp2, true)];
    if degrees.pp == 1 {
        // A pipeline's stages stay gathered from the first pass to the last, whatever `reshard` says.
        all.push((Parallelism::Fsdp2, false));
    }
    if base.hardware.nodes > 1 && copies.is_multiple_of(base.hardware.nodes) {
        all.push((Parallelism::Hsdp, true));
    }
    all.push((Parallelism::Ddp, true));
    all
}

/// The run with this layout; `None` if it is invalid.
fn arranged(
    base: &Scenario,
    degrees: &ParallelDegrees,
    (strategy, reshard): (Parallelism, bool),
) -> Option<Scenario> {
    let mut changed = base.clone();
    let parallel = &mut changed.parallel;
    parallel.tp = degrees.tp;
    parallel.pp = degrees.pp;
    parallel.cp = degrees.cp;
    parallel.ep = 1;
    parallel.strategy = strategy;
    parallel.reshard = reshard;
    // Unsharded gradients between micro-batches would cost as much as FSDP saves.
    parallel.sync_each = strategy != Parallelism::Ddp;
    parallel.sequence_parallel = degrees.tp > 1;
    parallel.loss_parallel = degrees.tp > 1;
    parallel.schedule = Schedule::OneForwardOneBackward;
    parallel.virtual_stages = 1;
    let wanted = changed.batch().wanted.unwrap_or_default();
    wanted.is_multiple_of(changed.replicas()).then_some(changed)
}

/// With this micro-batch and the accumulation for the wanted batch; a pipeline needs at least one micro-batch per stage.
fn batched(scenario: &Scenario, micro_batch: u64) -> Option<Scenario> {
    let each = scenario.batch().wanted.unwrap_or_default() / scenario.replicas();
    let accumulation = each / micro_batch.max(1);
    let enough = accumulation >= u64::from(scenario.parallel.pp.max(1));
    let mut changed = scenario.clone();
    changed.data.micro_batch = micro_batch;
    changed.training.accumulation = accumulation;
    (enough && each.is_multiple_of(micro_batch)).then_some(changed)
}

/// The number of micro-batches that are tried, powers of two.
const SIZES: u32 = 6;

#[derive(Debug)]
struct Search {
    allowance: Bytes,
    points: Vec<Point>,
    tried: u64,
    too_large: u64,
    left_out: u64,
}

impl Search {
    fn new(base: &Scenario, goal: Goal) -> Result<Self, Unsupported> {
        // The allowance is the same for all layouts; a small run yields it.
        let mut small = base.clone();
        small.data.micro_batch = 1;
        small.training.accumulation = 1;
        small.parallel.strategy = Parallelism::Fsdp2;
        [small.parallel.tp, small.parallel.pp, small.parallel.cp] = [1; 3];
        Ok(Self::of(goal.allowance(&estimate(&small)?)?))
    }

    const fn of(allowance: Bytes) -> Self {
        Self {
            allowance,
            points: Vec::new(),
            tried: 0,
            too_large: 0,
            left_out: 0,
        }
    }

    /// Every run with these degrees that may fit.
    fn follow(&mut self, base: &Scenario, degrees: &ParallelDegrees) -> Result<(), Unsupported> {
        // Micro-batches that may fit, with and without checkpointing: what needs too much with the most sharding needs too
        // much with any.
        let mut sizes = [SIZES; 2];
        for strategy in strategies(base, degrees) {
            let Some(mut layout) = arranged(base, degrees, strategy) else {
                self.left_out += 1;
                continue;
            };
            let modes = [Checkpointing::Layers, Checkpointing::None];
            for (mode, sizes) in modes.into_iter().zip(&mut sizes) {
                layout.training.checkpointing = mode;
                let fitted = self.micro_batches(&layout, sizes)?;
                if !fitted {
                    // If this does not fit, nothing that keeps more does.
                    break;
                }
            }
        }
        Ok(())
    }

    /// Tries micro-batches from one upwards as long as they fit, and returns whether one does. Those that need too much are
    /// removed from `sizes`.
    fn micro_batches(&mut self, layout: &Scenario, sizes: &mut u32) -> Result<bool, Unsupported> {
        let mut fits = false;
        for exponent in 0..*sizes {
            let Some(run) = batched(layout, 1 << exponent) else {
                continue;
            };
            let too_large = self.too_large;
            let Some(point) = self.run(run)? else {
                if self.too_large > too_large {
                    *sizes = exponent;
                }
                break;
            };
            fits = true;
            self.points.push(point);
        }
        Ok(fits)
    }

    /// Simulates a run that may fit.
    fn run(&mut self, scenario: Scenario) -> Result<Option<Point>, Unsupported> {
        if !scenario.check().is_empty() {
            self.left_out += 1;
            return Ok(None);
        }
        let quick = match quick_step(&scenario, self.allowance) {
            Ok(quick) if quick.is_split => quick,
            Ok(_) | Err(Unsupported::TooMuchWork) => {
                self.left_out += 1;
                return Ok(None);
            }
            Err(other) => return Err(other),
        };
        self.tried += 1;
        if quick.peak > self.allowance {
            self.too_large += 1;
            return Ok(None);
        }
        Ok(Some(Point {
            scenario,
            peak: quick.peak,
            time: quick.step,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    fn found(run: &str, gpus: u32) -> Layouts {
        let mut scenario = Scenario::default();
        for word in run.split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        layouts(&scenario, gpus, Goal::default()).unwrap()
    }

    #[test]
    fn the_fastest_layout_fits_and_the_front_trades_time_for_memory() {
        let run = "model=llama-3.1-8b gpu=a100-sxm4-80gb precision=amp-bf16 mb=1 seq=2048 optim=adamw-fused";
        let found = found(run, 8);
        let best = found.best.unwrap();
        assert!(best.fits && best.scenario.hardware.gpus == 8);
        assert_eq!(best.scenario.check(), []);
        let fewest = found.fewest.unwrap().scenario.hardware.gpus;
        assert!(fewest > 1 && fewest < 8, "{fewest}");
        assert!(found.front.len() > 1);
        for pair in found.front.windows(2) {
            assert!(pair[0].time.expected.get() <= pair[1].time.expected.get());
            let [more, less] =
                [&pair[0], &pair[1]].map(|layout| layout.estimate.allocated.expected);
            assert!(less < more, "{less} after {more}");
        }
    }
}
