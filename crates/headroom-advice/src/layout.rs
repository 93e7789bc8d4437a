//! Layouts: the ways in which so many GPUs can share a run's work, of those that its model, its batch and its machines admit.

use super::goal::Goal;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::time::Span;
use headroom_core::estimate::{Estimate, Unsupported, estimate, quick_step};
use headroom_scenario::{Checkpointing, Hardware, Parallelism, Scenario, Schedule};

/// A layout that has been estimated in full.
#[derive(Clone, Debug)]
pub struct Layout {
    pub scenario: Scenario,
    pub estimate: Estimate,
    pub time: Span,
    pub fits: bool,
}

/// What was found among all layouts.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    /// The fastest that fits.
    pub best: Option<Layout>,
    /// Those that are faster than any that needs less, the fastest first.
    pub front: Vec<Layout>,
    /// The smallest number of GPUs that trains it, and how; of powers of two up to those asked for.
    pub fewest: Option<Layout>,
    /// Layouts that were run, that need too much, and that are not modelled or not valid.
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

/// All layouts of a run on so many GPUs.
pub fn layouts(scenario: &Scenario, gpus: u32, goal: Goal) -> Result<Layouts, Unsupported> {
    let mut search = LayoutSearch::new(scenario, gpus, goal)?;
    while !search.is_done() {
        search.step()?;
    }
    Ok(search.found)
}

/// A search over layouts that is done a little at a time.
#[derive(Debug)]
pub struct LayoutSearch {
    base: Scenario,
    goal: Goal,
    search: Search,
    /// Degrees that are still to be followed.
    waiting: Vec<Degrees>,
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

    /// All that was found, once it is done; until then how many layouts were run.
    pub fn found(&self) -> &Layouts {
        &self.found
    }

    /// The runs of one layout's degrees, or what is made of all of them.
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

/// The smallest power of two of GPUs on which some layout fits, up to those of the run.
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
            // The first divides most: where it needs too much, so do the others.
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

/// The run on so many GPUs, on machines of as many as now, or of eight.
fn on(scenario: &Scenario, gpus: u32) -> Scenario {
    let mut base = scenario.clone();
    let hardware = &mut base.hardware;
    let each = match hardware.nodes {
        0 | 1 => Hardware::ON_A_MACHINE,
        _ => hardware.gpus_of_a_machine(),
    };
    hardware.gpus = gpus.max(1);
    hardware.nodes = hardware.gpus.div_ceil(each);
    if base.data.global_batch == 0 {
        base.data.global_batch = scenario.effective_batch().max(u64::from(gpus));
    }
    base
}

/// The degrees of a layout; copies of the model share what is left of the GPUs.
#[derive(Clone, Copy, Debug)]
struct Degrees {
    tp: u32,
    pp: u32,
    cp: u32,
}

/// Powers of two that divide this number.
fn powers(of: u32) -> impl Iterator<Item = u32> {
    (0..=of.trailing_zeros().min(10)).map(|exponent| 1 << exponent)
}

/// Degrees that the GPUs and the model admit: matrices are split within a machine.
fn meshes(base: &Scenario) -> Vec<Degrees> {
    let hardware = &base.hardware;
    let gpus = hardware.gpus.max(1);
    let machine = gpus / hardware.nodes.max(1);
    let layers = base.model.dim("layers").unwrap_or(1);
    let mut all = Vec::new();
    for tp in powers(gpus).filter(|tp| *tp <= machine) {
        for pp in powers(gpus / tp).filter(|pp| u64::from(*pp) <= layers) {
            let longest = base.data.sequence / 2048;
            for cp in powers(gpus / tp / pp).filter(|cp| *cp == 1 || u64::from(*cp) <= longest) {
                all.push(Degrees { tp, pp, cp });
            }
        }
    }
    all
}

/// What can divide the copies of the model, the one that needs the least memory first.
fn strategies(base: &Scenario, degrees: &Degrees) -> Vec<(Parallelism, bool)> {
    let shared = degrees.tp * degrees.pp * degrees.cp;
    let copies = base.hardware.gpus / shared.max(1);
    if copies.saturating_mul(degrees.cp) < 2 {
        return vec![(Parallelism::Ddp, true)];
    }
    let mut all = vec![(Parallelism::Fsdp2, true)];
    if degrees.pp == 1 {
        // A pipeline's stages stay gathered from the first pass to the last, whatever is asked for.
        all.push((Parallelism::Fsdp2, false));
    }
    if base.hardware.nodes > 1 && copies.is_multiple_of(base.hardware.nodes) {
        all.push((Parallelism::Hsdp, true));
    }
    all.push((Parallelism::Ddp, true));
    all
}

/// The run with this layout; `None` where the check refuses it.
fn arranged(
    base: &Scenario,
    degrees: &Degrees,
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
    // Whole gradients between micro-batches would take as much as FSDP spares.
    parallel.sync_each = strategy != Parallelism::Ddp;
    parallel.sequence_parallel = degrees.tp > 1;
    parallel.loss_parallel = degrees.tp > 1;
    parallel.schedule = Schedule::OneForwardOneBackward;
    parallel.virtual_stages = 1;
    let copies = changed.replicas();
    changed
        .data
        .global_batch
        .is_multiple_of(copies)
        .then_some(changed)
}

/// With this micro-batch, and the accumulation that makes the wanted batch of it; a pipeline needs one for each stage.
fn batched(scenario: &Scenario, micro_batch: u64) -> Option<Scenario> {
    let each = scenario.data.global_batch / scenario.replicas();
    let accumulation = each / micro_batch.max(1);
    let enough = accumulation >= u64::from(scenario.parallel.pp.max(1));
    let mut changed = scenario.clone();
    changed.data.micro_batch = micro_batch;
    changed.training.accumulation = accumulation;
    (enough && each.is_multiple_of(micro_batch)).then_some(changed)
}

/// Micro-batches that are tried: as many powers of two.
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
        // What the card leaves is the same for all; a small run tells it.
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
    fn follow(&mut self, base: &Scenario, degrees: &Degrees) -> Result<(), Unsupported> {
        // Sizes of micro-batches, with and without checkpoints, that may fit: what needs too much where most is divided needs
        // too much everywhere.
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
                    // Where not even this fits, nothing that keeps more does.
                    break;
                }
            }
        }
        Ok(())
    }

    /// Micro-batches from one upwards, as long as they fit: whether one does. Those that need too much are taken off `sizes`.
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

    /// A run that may fit.
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
