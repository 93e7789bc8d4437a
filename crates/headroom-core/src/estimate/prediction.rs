//! The prediction of one scenario: the engine runs once for each distinct question, and all answers are read from those
//! runs.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::alive::{self, AliveTensors};
use super::batch_sizes::{deciding, typical};
use super::card::{self, SmallestCard};
use super::engine::Engine;
use super::explain::{self, TensorDetail, TensorGroup};
use super::ranks::{self, FirstSteps, RankMemory};
use super::time::{self, Span, StepTime, Timetable};
use super::{
    Category, Estimate, Part, StepRequests, StepSequence, Unsupported, batch_sizes,
    category_timeline, estimate, names,
};
use crate::nets::Net;
use crate::parallel::MODULE_HOOKS;
use crate::step::{Detail, Run};
use headroom_base::mesh::Rank;
use headroom_base::units::Bytes;
use headroom_catalog::{Gpu, ModelEntry};
use headroom_scenario::{Case, Checkpointing, Problem, Scenario};

/// The prediction of one scenario. Everything is computed lazily, and once.
#[derive(Debug)]
pub struct Prediction {
    scenario: Scenario,
    /// The same with the batches that decide whether it fits, if batches vary.
    deciding: Option<Scenario>,
    gpu: Option<&'static Gpu>,
    model: Option<&'static ModelEntry>,
    /// Of the fullest rank.
    first_steps: Once<FirstSteps>,
    /// The first steps with each tensor's shape and the operations that save it.
    noted_steps: Once<FirstSteps>,
    steady_step: Once<Run>,
    estimate: Once<Estimate>,
    ranks: Once<Vec<RankMemory>>,
    typical: Once<Option<Estimate>>,
    step_time: Once<StepTime>,
    smallest_card: Once<Option<SmallestCard>>,
    warnings: Once<Vec<Problem>>,
}

/// An instant of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The peak.
    Peak,
    /// An instant of the estimate's timeline, by its index.
    Instant(usize),
}

/// Predictions of equal scenarios are equal.
impl PartialEq for Prediction {
    fn eq(&self, other: &Self) -> bool {
        self.scenario == other.scenario
    }
}

impl Prediction {
    /// Looks up the GPU and the model; nothing is run yet.
    pub fn new(scenario: Scenario) -> Self {
        let Case { gpu, model, .. } = Case::of(&scenario);
        let deciding = match deciding(&scenario) {
            Cow::Owned(deciding) => Some(deciding),
            Cow::Borrowed(_) => None,
        };
        Self {
            scenario,
            deciding,
            gpu,
            model,
            first_steps: Once::default(),
            noted_steps: Once::default(),
            steady_step: Once::default(),
            estimate: Once::default(),
            ranks: Once::default(),
            typical: Once::default(),
            step_time: Once::default(),
            smallest_card: Once::default(),
            warnings: Once::default(),
        }
    }

    /// The scenario, with its own batch size even if larger batches decide whether it fits.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The scenario with its GPU and its model from the catalogue, on the first rank.
    pub fn case(&self) -> Case<'_> {
        Case {
            scenario: &self.scenario,
            gpu: self.gpu,
            model: self.model,
            rank: Rank::default(),
        }
    }

    /// The scenario's network, refused if it does not run at these sizes: for runs on another machine.
    pub fn network(&self) -> Result<Box<dyn Net>, Unsupported> {
        Ok(Engine::of(&self.case())?.into_net())
    }

    /// The case that decides whether the run fits: with the largest batches, if samples vary.
    fn deciding(&self) -> Case<'_> {
        Case {
            scenario: self.deciding.as_ref().unwrap_or(&self.scenario),
            ..self.case()
        }
    }

    /// The estimate of a training step on the fullest rank; with the largest batch, if samples vary.
    pub fn estimate(&self) -> Result<&Estimate, Unsupported> {
        self.estimate
            .get(|| self.first_steps()?.estimate(&self.deciding()))
    }

    /// The memory of each rank that differs: the stages of a pipeline, and the first and the last shard.
    pub fn ranks(&self) -> Result<&[RankMemory], Unsupported> {
        let found = self
            .ranks
            .get(|| ranks::all(&self.deciding(), self.first_steps()?, self.estimate()?));
        found.map(Vec::as_slice)
    }

    /// The estimate of a typical batch, if the largest decides.
    pub fn typical(&self) -> Result<Option<&Estimate>, Unsupported> {
        let found = self.typical.get(|| {
            let typical = self.deciding.as_ref().and_then(|_| typical(&self.scenario));
            typical.map(|typical| estimate(&typical)).transpose()
        });
        found.map(Option::as_ref)
    }

    /// The groups of tensors alive at an instant, the largest first; empty beyond the end of the timeline.
    pub fn tensors(&self, at: At) -> Result<Vec<TensorGroup>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let instant = match at {
            At::Peak => peaks.highest().copied(),
            At::Instant(index) => peaks.instant(index),
        };
        Ok(instant.map_or_else(Vec::new, |instant| explain::groups(&run.trace, &instant)))
    }

    /// Every tensor that is alive at the peak.
    pub fn alive_at_peak(&self) -> Result<AliveTensors, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let peak = peaks.highest();
        Ok(peak.map_or_else(AliveTensors::default, |peak| {
            alive::at(&run.trace, peaks, peak)
        }))
    }

    /// Every tensor that is alive at the instant closest to these sizes, which are sorted and rounded as the allocator
    /// rounds them.
    pub fn alive_nearest(&self, sizes: &[u64]) -> Result<AliveTensors, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let nearest = alive::nearest(&run.trace, peaks, sizes);
        Ok(nearest.map_or_else(AliveTensors::default, |nearest| {
            alive::at(&run.trace, peaks, &nearest)
        }))
    }

    /// Allocated memory at each instant of the estimate's timeline, by category.
    pub fn timeline_by_category(&self) -> Result<Vec<Vec<Part<Category>>>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        Ok(category_timeline::of(&run.trace, peaks))
    }

    /// The groups of tensors alive at the peak inside a module, whose path has `*` for indices; the largest first.
    pub fn tensors_in(&self, module: &str) -> Result<Vec<TensorDetail>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.noted_steps.get(|| {
            let fullest = self.first_steps()?.rank;
            ranks::first_steps(&self.deciding().on(fullest), Detail::Tensors)
        })?;
        let peak = peaks.highest();
        Ok(peak.map_or_else(Vec::new, |peak| explain::inside(&run.trace, peak, module)))
    }

    /// The smallest GPU memory on which the steps run; `None` if they run on none.
    pub fn smallest_card(&self) -> Result<Option<SmallestCard>, Unsupported> {
        let found = self.smallest_card.get(|| {
            let FirstSteps { run, peaks, .. } = self.first_steps()?;
            Ok(card::smallest(&self.deciding(), &run.trace, peaks))
        });
        found.copied()
    }

    /// Whether the steps run on a GPU that is too small for what they would reserve; `None` if they fit, if memory grows
    /// afterwards, or if finding out takes too long.
    pub fn runs_when_refused(&self) -> Option<bool> {
        let estimate = self.estimate().ok()?;
        let short = estimate.fits == Some(false) && estimate.growth == Bytes::ZERO;
        let FirstSteps { run, peaks, .. } = self.first_steps().ok().filter(|_| short)?;
        card::runs_when_refused(&self.deciding(), &run.trace, peaks)
    }

    /// Many steps with batches of varying size.
    pub fn many_steps(&self, count: usize) -> Result<StepSequence, Unsupported> {
        batch_sizes::steps(&self.case(), || Ok(&self.first_steps()?.run), count)
    }

    /// The requests of the first step, or of a later one, with batches of this size, in the unit of `largest_size`.
    pub fn step_requests(&self, size: u64, first: bool) -> Result<StepRequests, Unsupported> {
        batch_sizes::requests(&self.case(), size, first)
    }

    /// The size of the largest batch: edges of a batch in networks over graphs, else tokens of a sample.
    pub fn largest_size(&self) -> u64 {
        batch_sizes::largest(&self.case())
    }

    /// The duration of a step.
    pub fn step_time(&self) -> Result<StepTime, Unsupported> {
        let found = self.step_time.get(|| {
            let speeds = time::known(&self.case())?;
            let run = self.steady_step()?;
            // Model FLOPs exclude recomputation.
            let plain = match self.scenario.training.checkpointing {
                Checkpointing::None | Checkpointing::Offload => None,
                _ => {
                    let mut plain = self.scenario.clone();
                    plain.training.checkpointing = Checkpointing::None;
                    let case = Case {
                        scenario: &plain,
                        ..self.case()
                    };
                    Some(Engine::of(&case)?.steady_step(Detail::Kernels)?)
                }
            };
            Ok(time::of_run(&self.case(), run, plain.as_ref(), &speeds))
        });
        found.copied()
    }

    /// The duration of a step without the measurements of these sources.
    pub fn step_time_without(&self, left_out: &dyn Fn(&str) -> bool) -> Result<Span, Unsupported> {
        let speeds = time::known_without(&self.case(), left_out)?;
        Ok(time::phase_times(self.steady_step()?, &self.case(), &speeds).step())
    }

    /// The schedule of a pipeline, for at most this many micro-batches; `None` if the run has no modelled pipeline.
    pub fn timetable(&self, most: usize) -> Result<Option<Timetable>, Unsupported> {
        if self.steady_step()?.pipeline_parallel < 2 {
            return Ok(None);
        }
        Ok(time::timetable(&self.case(), &self.step_time()?, most))
    }

    /// The distinct kernel names of a step, without pure CPU work.
    pub fn kernels(&self) -> Result<Vec<&'static str>, Unsupported> {
        let mut names: Vec<&'static str> = Vec::new();
        for kernel in &self.steady_step()?.trace.kernels {
            if !names.contains(&kernel.op) && kernel.op != MODULE_HOOKS {
                names.push(kernel.op);
            }
        }
        Ok(names)
    }

    /// Settings that run but are most likely mistakes, such as names that match nothing.
    pub fn warnings(&self) -> &[Problem] {
        let found = self.warnings.get(|| Ok(names::warnings(&self.case())));
        found.map_or(&[], Vec::as_slice)
    }

    /// The first steps of the fullest rank.
    pub(super) fn first_steps(&self) -> Result<&FirstSteps, Unsupported> {
        self.first_steps
            .get(|| ranks::fullest(&self.deciding(), Detail::Kernels))
    }

    /// A steady-state step of the rank that decides its duration: a pipeline's last, which has the head.
    fn steady_step(&self) -> Result<&Run, Unsupported> {
        let of = |rank| Engine::of(&self.case().on(rank))?.steady_step(Detail::Kernels);
        self.steady_step.get(|| {
            let first = of(Rank::default())?;
            match first.pipeline_parallel.checked_sub(1) {
                Some(stage @ 1..) => of(Rank { stage, shard: 0 }),
                _ => Ok(first),
            }
        })
    }
}

/// A value that is computed once.
#[derive(Debug)]
struct Once<T>(OnceLock<Result<T, Unsupported>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Once<T> {
    fn get(&self, work: impl FnOnce() -> Result<T, Unsupported>) -> Result<&T, Unsupported> {
        self.0.get_or_init(work).as_ref().map_err(Clone::clone)
    }
}
