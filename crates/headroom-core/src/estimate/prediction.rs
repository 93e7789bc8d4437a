//! One scenario's prediction: the engine runs once for each distinct question, and every answer is read from those runs.

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
    Category, Estimate, Part, StepSequence, Unsupported, batch_sizes, category_timeline, estimate,
    names,
};
use crate::parallel::MODULE_HOOKS;
use crate::step::{Detail, Run};
use headroom_base::mesh::Rank;
use headroom_base::units::Bytes;
use headroom_catalog::{Gpu, ModelEntry};
use headroom_scenario::{Case, Checkpointing, Problem, Scenario};

/// What a run of one scenario needs. Nothing is computed before it is asked for, and nothing twice.
#[derive(Debug)]
pub struct Prediction {
    scenario: Scenario,
    /// The same with the batches that decide whether it fits, where they are not all alike.
    deciding: Option<Scenario>,
    gpu: Option<&'static Gpu>,
    model: Option<&'static ModelEntry>,
    /// Of the rank that holds most.
    first_steps: Once<FirstSteps>,
    /// The first steps with a note of each tensor's shape and of what saves it.
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
    /// When the most is allocated.
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

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub fn case(&self) -> Case<'_> {
        Case {
            scenario: &self.scenario,
            gpu: self.gpu,
            model: self.model,
            rank: Rank::default(),
        }
    }

    /// The case whose memory decides: with the largest batches, where samples vary.
    fn deciding(&self) -> Case<'_> {
        Case {
            scenario: self.deciding.as_ref().unwrap_or(&self.scenario),
            ..self.case()
        }
    }

    /// What a training step needs on the rank that holds most; of the largest batch, where samples vary.
    pub fn estimate(&self) -> Result<&Estimate, Unsupported> {
        self.estimate
            .get(|| self.first_steps()?.estimate(&self.deciding()))
    }

    /// What each rank needs, of those that differ: the stages of a pipeline, and the first and the last shard.
    pub fn ranks(&self) -> Result<&[RankMemory], Unsupported> {
        let found = self
            .ranks
            .get(|| ranks::all(&self.deciding(), self.first_steps()?, self.estimate()?));
        found.map(Vec::as_slice)
    }

    /// What a step with a typical batch needs, where the largest decides.
    pub fn typical(&self) -> Result<Option<&Estimate>, Unsupported> {
        let found = self.typical.get(|| {
            let typical = self.deciding.as_ref().and_then(|_| typical(&self.scenario));
            typical.map(|typical| estimate(&typical)).transpose()
        });
        found.map(Option::as_ref)
    }

    /// The tensors that are alive at an instant, the largest group first; none beyond the end of the timeline.
    pub fn tensors(&self, at: At) -> Result<Vec<TensorGroup>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let instant = match at {
            At::Peak => peaks.highest().copied(),
            At::Instant(index) => peaks.instant(index),
        };
        Ok(instant.map_or_else(Vec::new, |instant| explain::groups(&run.trace, &instant)))
    }

    /// The tensors that are alive when the most is allocated, one by one.
    pub fn alive_at_peak(&self) -> Result<AliveTensors, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let peak = peaks.highest();
        Ok(peak.map_or_else(AliveTensors::default, |peak| {
            alive::at(&run.trace, peaks, peak)
        }))
    }

    /// The tensors that are alive at the instant that is most like tensors of these sizes, which are in order and as the
    /// allocator rounds them.
    pub fn alive_nearest(&self, sizes: &[u64]) -> Result<AliveTensors, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        let nearest = alive::nearest(&run.trace, peaks, sizes);
        Ok(nearest.map_or_else(AliveTensors::default, |nearest| {
            alive::at(&run.trace, peaks, &nearest)
        }))
    }

    /// What is allocated at each instant of the estimate's timeline, by category.
    pub fn timeline_by_category(&self) -> Result<Vec<Vec<Part<Category>>>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.first_steps()?;
        Ok(category_timeline::of(&run.trace, peaks))
    }

    /// The tensors that are alive at the peak inside a module, whose path has `*` for numbers; the largest group first.
    pub fn tensors_in(&self, module: &str) -> Result<Vec<TensorDetail>, Unsupported> {
        let FirstSteps { run, peaks, .. } = self.noted_steps.get(|| {
            let fullest = self.first_steps()?.rank;
            ranks::first_steps(&self.deciding().on(fullest), Detail::Tensors)
        })?;
        let peak = peaks.highest();
        Ok(peak.map_or_else(Vec::new, |peak| explain::inside(&run.trace, peak, module)))
    }

    /// The smallest GPU memory on which the steps run; `None` where they run on none.
    pub fn smallest_card(&self) -> Result<Option<SmallestCard>, Unsupported> {
        let found = self.smallest_card.get(|| {
            let FirstSteps { run, peaks, .. } = self.first_steps()?;
            Ok(card::smallest(&self.deciding(), &run.trace, peaks))
        });
        found.copied()
    }

    /// Whether the steps run on a card that is too small for what they would reserve; `None` where they fit, where memory grows
    /// afterwards, and where it takes too long to find out at once.
    pub fn runs_when_refused(&self) -> Option<bool> {
        let estimate = self.estimate().ok()?;
        let short = estimate.fits == Some(false) && estimate.growth == Bytes::ZERO;
        let FirstSteps { run, peaks, .. } = self.first_steps().ok().filter(|_| short)?;
        card::runs_when_refused(&self.deciding(), &run.trace, peaks)
    }

    /// Many steps with batches of varying size.
    pub fn many_steps(&self, count: usize) -> Result<StepSequence, Unsupported> {
        batch_sizes::steps(self, count)
    }

    /// How long a step takes.
    pub fn step_time(&self) -> Result<StepTime, Unsupported> {
        let found = self.step_time.get(|| {
            let speeds = time::known(&self.case())?;
            let run = self.steady_step()?;
            // The model's arithmetic is without what checkpoints compute again.
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

    /// How long a step takes where nothing is known from these sources.
    pub fn step_without(&self, left_out: &dyn Fn(&str) -> bool) -> Result<Span, Unsupported> {
        let speeds = time::known_without(&self.case(), left_out)?;
        Ok(time::pace(self.steady_step()?, &self.case(), &speeds).step())
    }

    /// When the GPUs of a pipeline compute what, of so many micro-batches at most; none where the tape follows no pipeline.
    pub fn timetable(&self, most: usize) -> Result<Option<Timetable>, Unsupported> {
        if self.steady_step()?.pipeline_parallel < 2 {
            return Ok(None);
        }
        Ok(time::timetable(&self.case(), &self.step_time()?, most))
    }

    /// The names of the kernels of a step, each once; not what takes the program time alone.
    pub fn kernels(&self) -> Result<Vec<&'static str>, Unsupported> {
        let mut names: Vec<&'static str> = Vec::new();
        for kernel in &self.steady_step()?.trace.kernels {
            if !names.contains(&kernel.op) && kernel.op != MODULE_HOOKS {
                names.push(kernel.op);
            }
        }
        Ok(names)
    }

    /// Settings that run and are most likely a mistake, names that match nothing among them.
    pub fn warnings(&self) -> &[Problem] {
        let found = self.warnings.get(|| Ok(names::warnings(&self.case())));
        found.map_or(&[], Vec::as_slice)
    }

    /// The first steps of the rank that holds most.
    pub(super) fn first_steps(&self) -> Result<&FirstSteps, Unsupported> {
        self.first_steps
            .get(|| ranks::fullest(&self.deciding(), Detail::Kernels))
    }

    /// A step like all later ones, of the rank that decides how long it takes: of a pipeline the last, which has the head.
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

/// An answer that is worked out once.
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
