//! The evaluation of runs: their peak and their step time, each part once.

use std::collections::HashMap;
use std::rc::Rc;

use super::edit::Edit;
use super::space::Space;
use headroom_base::units::Bytes;
use headroom_core::estimate::halves::{self, CombinedStep, OptimizerUpdate, Passes};
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{
    Estimate, Fit, Prediction, Unsupported, allocatable, quick_peak, quick_step,
};
use headroom_scenario::Scenario;

/// A run's allocated peak and step time, without the allocator.
#[derive(Clone, Copy, Debug)]
pub struct Quick {
    pub peak: Bytes,
    /// What may be allocated.
    pub room: Bytes,
    pub seconds: f64,
    /// The peak without the gradients, which an optimizer inside backward frees: a lower bound.
    pub without_gradients: Bytes,
}

impl Quick {
    pub fn may_fit(&self) -> bool {
        self.peak <= self.room
    }
}

/// A run's full estimate.
#[derive(Clone, Debug)]
pub struct Full {
    pub scenario: Scenario,
    pub estimate: Estimate,
    /// `None` if the GPU's speed is unknown.
    pub time: Option<StepTime>,
    /// For the order of runs, also on a GPU of unknown speed.
    pub seconds: f64,
}

impl Full {
    pub fn fit(&self) -> Fit {
        self.estimate.fit().unwrap_or(Fit::No)
    }

    pub fn fits(&self) -> bool {
        matches!(self.fit(), Fit::Fits | Fit::Probably)
    }

    /// The device memory that the run needs by its end.
    pub fn device(&self) -> Bytes {
        self.estimate.device.expected + self.estimate.growth
    }
}

/// Evaluations of one space.
#[derive(Debug)]
pub struct Evaluator {
    pub space: Space,
    quick: HashMap<Vec<Edit>, Option<Quick>>,
    passes: HashMap<Vec<Edit>, Option<Passes>>,
    updates: HashMap<Vec<Edit>, Option<OptimizerUpdate>>,
    stateless: HashMap<Vec<Edit>, Option<OptimizerUpdate>>,
    full: HashMap<Vec<Edit>, Option<Rc<Full>>>,
    /// Whether runs of these edits, whatever their micro-batch, are accepted.
    accepted: HashMap<Vec<Edit>, bool>,
    /// Tensors that were recorded: the work so far.
    pub work: u64,
}

/// The work of a run of which little is recorded.
const LEAST_WORK: u64 = 500;

/// The work of a full estimate, in recorded tensors: several steps, their replay, and times.
const FULLY: u64 = 6;

impl Evaluator {
    pub fn new(space: Space) -> Self {
        Self {
            space,
            quick: HashMap::new(),
            passes: HashMap::new(),
            updates: HashMap::new(),
            stateless: HashMap::new(),
            full: HashMap::new(),
            accepted: HashMap::new(),
            work: 0,
        }
    }

    /// The peak and the time of the run with these edits, sorted by axis; `None` if it is impossible or not modelled.
    pub fn quick(&mut self, edits: &[Edit]) -> Option<Quick> {
        if let Some(known) = self.quick.get(edits) {
            return *known;
        }
        let found = self.run_quickly(edits);
        self.quick.insert(edits.to_vec(), found);
        found
    }

    fn run_quickly(&mut self, edits: &[Edit]) -> Option<Quick> {
        // What one program cannot run is not worth a simulation, unless it is the way to what it can.
        if self.space.locks.is_strict() && self.space.accepts_run && !self.is_accepted(edits) {
            return None;
        }
        let scenario = self.space.scenario(edits)?;
        let room = allocatable(&scenario)? - self.space.kept_free;
        if scenario.parallel.pp > 1 {
            let step = quick_step(&scenario, Bytes::MAX).ok();
            self.work += step.map_or(LEAST_WORK, |step| step.tensors);
            let step = step?;
            return step.is_split.then_some(Quick {
                peak: step.peak,
                room,
                seconds: step.step.expected.get(),
                without_gradients: Bytes::ZERO,
            });
        }
        let (step, gradients) = self.combined(&scenario, edits)?;
        Some(Quick {
            peak: step.peak,
            room,
            seconds: step.step.expected.get(),
            without_gradients: step.in_passes - gradients,
        })
    }

    /// The step in two halves, each of which is run once for all runs that share it.
    fn combined(&mut self, scenario: &Scenario, edits: &[Edit]) -> Option<(CombinedStep, Bytes)> {
        if !halves::separable(scenario) {
            self.work += LEAST_WORK;
            return Some((halves::unsplit(scenario).ok()?, Bytes::ZERO));
        }
        let work = &mut self.work;
        let kept = |keep: &dyn Fn(&Edit) -> bool| -> Vec<Edit> {
            edits.iter().filter(|edit| keep(edit)).copied().collect()
        };
        let passes = *self
            .passes
            .entry(kept(&|edit| !edit.is_of_update()))
            .or_insert_with(|| {
                let passes = halves::passes(scenario).ok();
                let tensors = passes.as_ref().map_or(0, Passes::tensors);
                *work += tensors.max(LEAST_WORK);
                passes
            });
        let passes = passes.filter(Passes::is_split)?;
        let mut known = |all: &mut HashMap<Vec<Edit>, Option<OptimizerUpdate>>,
                         key: Vec<Edit>,
                         of: &dyn Fn() -> Scenario| {
            *all.entry(key).or_insert_with(|| {
                *work += LEAST_WORK;
                halves::update(&of()).ok()
            })
        };
        let update = known(
            &mut self.updates,
            kept(&|edit| !edit.is_of_passes()),
            &|| scenario.clone(),
        )?;
        let bare = known(
            &mut self.stateless,
            kept(&|edit| !edit.is_of_passes() && !edit.is_of_update()),
            &|| halves::stateless_update_key(scenario),
        )?;
        Some((halves::combine(&passes, &update, &bare), passes.gradients()))
    }

    /// The full estimate of the run with these edits; `None` if it is impossible or too much work.
    pub fn full(&mut self, edits: &[Edit]) -> Option<Rc<Full>> {
        if let Some(known) = self.full.get(edits) {
            return known.clone();
        }
        let found = self.run_fully(edits).map(Rc::new);
        self.full.insert(edits.to_vec(), found.clone());
        found
    }

    fn run_fully(&mut self, edits: &[Edit]) -> Option<Full> {
        let scenario = self.space.scenario(edits)?;
        self.work += FULLY * LEAST_WORK;
        let prediction = Prediction::new(scenario);
        let estimate = prediction.estimate().ok()?.clone();
        let time = match prediction.step_time() {
            Ok(time) => Some(time),
            Err(Unsupported::UnknownSpeed(_)) => None,
            Err(_) => return None,
        };
        let seconds = match &time {
            Some(time) => time.step.expected.get(),
            None => self.quick(edits)?.seconds,
        };
        Some(Full {
            scenario: prediction.scenario().clone(),
            estimate,
            time,
            seconds,
        })
    }

    /// Whether a stage between a pipeline's first and last needs too much.
    fn is_too_large_between(&self, edits: &[Edit]) -> bool {
        let run = self.space.scenario(edits).filter(|run| run.parallel.pp > 2);
        let needs = run.as_ref().and_then(|run| {
            let peak = quick_peak(run).ok()?;
            Some(peak > allocatable(run)? - self.space.kept_free)
        });
        run.is_some() && needs != Some(false)
    }

    /// Whether the run with these edits may be proposed. No program writes one micro-batch and refuses another.
    pub fn is_accepted(&mut self, edits: &[Edit]) -> bool {
        if !self.space.locks.is_strict() && !self.space.asks_some() {
            return true;
        }
        let of_any_size = |edit: &&Edit| !matches!(edit, Edit::MicroBatch(_));
        let key: Vec<Edit> = edits.iter().filter(of_any_size).copied().collect();
        if let Some(known) = self.accepted.get(&key) {
            return *known;
        }
        let Some(scenario) = self.space.scenario(edits) else {
            return false;
        };
        let accepted = self.space.locks.accept(&scenario);
        self.accepted.insert(key, accepted);
        accepted
    }

    /// Whether the run fits and everything that is asked of it holds.
    pub fn fits(&mut self, edits: &[Edit]) -> Option<Rc<Full>> {
        if !self.quick(edits)?.may_fit() {
            return None;
        }
        if !self.is_accepted(edits) || self.is_too_large_between(edits) {
            return None;
        }
        let goal = self.space.locks.goal;
        self.full(edits).filter(|full| goal.met(&full.estimate))
    }
}

/// These edits and one more, which takes the place of another on its axis.
pub fn with(edits: &[Edit], edit: Edit) -> Vec<Edit> {
    let mut all: Vec<Edit> = edits.to_vec();
    all.retain(|other| other.axis() != edit.axis());
    let place = all.partition_point(|other| other.axis() < edit.axis());
    all.insert(place, edit);
    all
}

/// These edits and others, which take the places of those on their axes.
pub fn with_all(edits: &[Edit], more: &[Edit]) -> Vec<Edit> {
    more.iter()
        .fold(edits.to_vec(), |all, edit| with(&all, *edit))
}

/// These edits without one.
pub fn without(edits: &[Edit], edit: Edit) -> Vec<Edit> {
    edits
        .iter()
        .filter(|other| **other != edit)
        .copied()
        .collect()
}
