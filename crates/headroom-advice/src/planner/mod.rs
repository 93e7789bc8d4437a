//! The planner: whole runs that fit, around one run, judged and spoken of in one way.
//!
//! A space has typed axes; an exploration evaluates as much of it as may hold the fastest or the roomiest run; plans are
//! chosen, verified by full estimates, simplified and put into steps. [`Planner::step`] does a little at a time, so that a
//! page can show progress and stop it; [`plan`] does all at once. Work is counted, not timed.

mod choose;
mod division;
mod edit;
mod evaluate;
mod explore;
mod reach;
mod results;
mod space;
mod speech;
mod steps;

pub use edit::{Axis, Edit, Sharding};
pub use evaluate::Full;
pub use reach::{OnCards, Reach, Reached, cards, fewest_gpus, on_gpus, reach};
pub use results::{Accepts, Locks, Results};
pub use speech::{ABOUT, Speed, speed};
pub use steps::Change;

use std::rc::Rc;

use crate::accumulation::{Equal, accumulation};
use choose::{Chosen, Keeps};
use evaluate::Evaluator;
use explore::Exploration;
use headroom_core::estimate::{Estimate, Fit, Prediction, Unsupported};
use headroom_scenario::Scenario;
use space::Space;

/// What a plan is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanId {
    /// The fewest changes that make the run fit.
    Fewest,
    Fastest,
    /// The most room of the plans that are at most a tenth slower than the fastest.
    Room,
}

impl PlanId {
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fewest => "fewest",
            Self::Fastest => "fastest",
            Self::Room => "room",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::Fewest => "fewest changes",
            Self::Fastest => "fastest",
            Self::Room => "most room",
        }
    }
}

/// A whole run that fits, and the way to it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub id: PlanId,
    pub full: Rc<Full>,
    /// In an order in which each saves memory or time.
    pub changes: Vec<Change>,
    pub results: Results,
}

/// A change of training without which nothing fits, and the fastest run with it.
#[derive(Clone, Debug)]
pub struct Unlock {
    pub plan: Plan,
    pub id: String,
    pub text: String,
}

/// The run as it is.
#[derive(Clone, Debug)]
pub struct Now {
    pub estimate: Estimate,
    pub seconds: Option<f64>,
}

/// All plans for a run.
#[derive(Clone, Debug)]
pub struct Plans {
    pub now: Now,
    /// At most three, the simplest first.
    pub plans: Vec<Plan>,
    /// If nothing fits with what is locked: what to unlock, the mildest first.
    pub unlock: Vec<Unlock>,
    /// Tensors that were recorded.
    pub work: u64,
}

impl Plans {
    pub fn fits(&self) -> bool {
        !self.plans.is_empty()
    }

    pub fn find(&self, id: PlanId) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.id == id)
    }
}

/// Plans for a run within these locks.
pub fn plan(run: &Scenario, locks: Locks) -> Result<Plans, Unsupported> {
    let mut planner = Planner::new(run, locks)?;
    while !planner.is_done() {
        planner.step();
    }
    Ok(planner.finish())
}

/// The fastest plan for a run within these locks; what would have to be unlocked is not looked for.
fn fastest_plan(run: &Scenario, locks: Locks) -> Option<Plan> {
    let mut planner = Planner::new(run, locks).ok()?;
    while !matches!(planner.stage, Stage::Sacrificing(_) | Stage::Done) {
        planner.step();
    }
    planner.finish().find(PlanId::Fastest).cloned()
}

/// The work that is left.
#[derive(Debug)]
enum Stage {
    Exploring(Box<Exploration>),
    /// Rare changes that may be needed, each tried with all runs.
    Rare(Vec<Edit>),
    /// Changes of training, the mildest first.
    Sacrificing(Vec<Edit>),
    Done,
}

/// A planner at work.
#[derive(Debug)]
pub struct Planner {
    evaluator: Evaluator,
    found: Plans,
    stage: Stage,
    /// What every run of the present exploration has.
    always: Vec<Edit>,
    /// The stage after the present exploration, if that finds nothing.
    next: Option<Stage>,
}

/// Rows of a list that is read at a glance.
const ROWS: usize = 5;

impl Planner {
    pub fn new(run: &Scenario, locks: Locks) -> Result<Self, Unsupported> {
        let prediction = Prediction::new(run.clone());
        let estimate = prediction.estimate()?;
        if estimate.usable.is_none() {
            return Err(Unsupported::UnknownMemory);
        }
        let now = Now {
            estimate: estimate.clone(),
            seconds: prediction
                .step_time()
                .ok()
                .map(|time| time.step.expected.get()),
        };
        let evaluator = Evaluator::new(Space::new(run, locks));
        let exploration = Exploration::new(&evaluator, &[]);
        let rare = evaluator.space.rare();
        Ok(Self {
            evaluator,
            found: Plans {
                now,
                plans: Vec::new(),
                unlock: Vec::new(),
                work: 0,
            },
            stage: Stage::Exploring(Box::new(exploration)),
            always: Vec::new(),
            next: Some(Stage::Rare(rare)),
        })
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// What is known so far.
    pub fn found(&self) -> &Plans {
        &self.found
    }

    pub fn finish(mut self) -> Plans {
        self.found.work = self.evaluator.work;
        self.found
    }

    /// Does the next piece of work.
    pub fn step(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Exploring(mut exploration) => {
                exploration.step(&mut self.evaluator);
                self.stage = if exploration.is_done() {
                    self.choose(&exploration)
                } else {
                    Stage::Exploring(exploration)
                };
            }
            Stage::Rare(mut rare) => {
                if rare.is_empty() {
                    let mut sacrifices = self.evaluator.space.sacrifices();
                    sacrifices.reverse();
                    self.stage = Stage::Sacrificing(sacrifices);
                } else {
                    let edit = rare.remove(0);
                    self.explore(edit, Stage::Rare(rare));
                }
            }
            Stage::Sacrificing(mut rest) => {
                let enough = self.found.unlock.len() >= ROWS || self.found.fits();
                if let Some(edit) = rest.pop().filter(|_| !enough) {
                    self.explore(edit, Stage::Sacrificing(rest));
                }
            }
            Stage::Done => {}
        }
    }

    fn explore(&mut self, always: Edit, next: Stage) {
        self.always = vec![always];
        self.next = Some(next);
        let exploration = Exploration::new(&self.evaluator, &self.always);
        self.stage = Stage::Exploring(Box::new(exploration));
    }

    /// The plans of an exploration, and the stage after it.
    fn choose(&mut self, exploration: &Exploration) -> Stage {
        let next = self.next.take().unwrap_or(Stage::Done);
        let sacrifice = self
            .always
            .first()
            .copied()
            .filter(|edit| edit.results() > self.evaluator.space.locks.most);
        let Some(fastest) = self.fastest(exploration) else {
            // That no program is known for what fits is better than nothing.
            if self.evaluator.space.asks_some() {
                self.evaluator.space.accepts_run = false;
                self.next = Some(next);
                let again = Exploration::new(&self.evaluator, &self.always);
                return Stage::Exploring(Box::new(again));
            }
            return next;
        };
        if let Some(edit) = sacrifice {
            let plan = self.plan(PlanId::Fastest, &fastest);
            self.found.unlock.push(Unlock {
                id: edit.id(),
                text: speech::title(&[edit], &plan.full.scenario),
                plan,
            });
            return next;
        }
        self.offer(exploration, &fastest);
        Stage::Done
    }

    fn fastest(&mut self, exploration: &Exploration) -> Option<Chosen> {
        let evaluator = &mut self.evaluator;
        let found = exploration.fastest.clone()?;
        let rare = evaluator.space.rare();
        let polished = choose::polished(evaluator, found, &rare);
        let keeps = Keeps::fastest(&polished);
        Some(choose::simplified(evaluator, &polished, &keeps))
    }

    /// The three plans, as far as they differ.
    fn offer(&mut self, exploration: &Exploration, fastest: &Chosen) {
        let roomy = choose::roomiest(&mut self.evaluator, exploration, fastest).map(|roomy| {
            let keeps = Keeps::room(&roomy, fastest);
            choose::simplified(&mut self.evaluator, &roomy, &keeps)
        });
        let roomy = roomy.filter(|roomy| saves(&roomy.full, &fastest.full));
        let mut plans = Vec::new();
        let now = &self.found.now.estimate;
        if now.fit() != Some(Fit::Fits) || !self.evaluator.space.locks.goal.met(now) {
            let chosen = roomy.iter().chain([fastest]);
            let options = self.options(chosen.flat_map(|chosen| &chosen.edits));
            let fewest = choose::fewest(&mut self.evaluator, &options);
            let fewer = fewest.filter(|fewest| fewest.edits.len() < fastest.edits.len());
            plans.extend(fewer.map(|fewer| self.plan(PlanId::Fewest, &fewer)));
        }
        plans.push(self.plan(PlanId::Fastest, fastest));
        plans.extend(roomy.map(|roomy| self.plan(PlanId::Room, &roomy)));
        // Edits that help only together are one step, so that another plan may take as few.
        let better = |plan: &Plan, other: &Plan| {
            other.full.device() < plan.full.device()
                && other.full.seconds < plan.full.seconds
                && other.changes.len() <= plan.changes.len()
        };
        let kept = plans
            .iter()
            .filter(|plan| !plans.iter().any(|other| better(plan, other)));
        self.found.plans = kept.cloned().collect();
    }

    /// Every single edit that is open to the run, those that are known to help first.
    fn options<'b>(&self, helpful: impl Iterator<Item = &'b Edit>) -> Vec<Edit> {
        let space = &self.evaluator.space;
        let mut all: Vec<Edit> = Vec::new();
        let mut add = |edits: Vec<Edit>| {
            for edit in edits {
                if !all.contains(&edit) && edit.axis() != Axis::MicroBatch {
                    all.push(edit);
                }
            }
        };
        add(helpful.copied().collect());
        add(space.checkpointing());
        let layouts = division::layouts(space).into_iter().flatten().flatten();
        let (sharding, dividing): (Vec<_>, Vec<_>) =
            layouts.partition(|edit| matches!(edit.axis(), Axis::Strategy | Axis::Host));
        add(sharding);
        add(space.toggles());
        add(space.optimizers());
        add(space.losses());
        add(space.precisions());
        add(space.in_backward().into_iter().collect());
        add(space.rare());
        add(space.expandable().into_iter().collect());
        add(dividing);
        all
    }

    fn plan(&mut self, id: PlanId, chosen: &Chosen) -> Plan {
        Plan {
            id,
            full: chosen.full.clone(),
            changes: steps::steps(&mut self.evaluator, &chosen.edits),
            results: self.results(&chosen.edits),
        }
    }

    /// What these edits do to the results together; smaller micro-batches train the same only if nothing looks at a batch.
    fn results(&self, edits: &[Edit]) -> Results {
        let most = edits.iter().map(Edit::results).max().unwrap_or_default();
        let run = &self.evaluator.space.run;
        let Some(changed) = self.evaluator.space.scenario(edits) else {
            return most;
        };
        let cut = changed.data.micro_batch != run.data.micro_batch
            || changed.training.accumulation != run.training.accumulation;
        if cut && differs_when_cut(&changed) {
            most.max(Results::SameBatch)
        } else {
            most
        }
    }
}

/// Whether a run trains differently if the samples of an update are cut in other micro-batches.
fn differs_when_cut(run: &Scenario) -> bool {
    let mut cut = run.clone();
    cut.training.accumulation = cut.training.accumulation.max(2);
    let aspects = accumulation(&cut);
    aspects.is_ok_and(|aspects| aspects.iter().any(|aspect| aspect.equal == Equal::No))
}

/// Whether a run leaves noticeably more room than another.
fn saves(roomy: &Full, fastest: &Full) -> bool {
    /// As a share of usable memory.
    const NOTICEABLE: f64 = 0.02;
    let usable = fastest.estimate.usable.unwrap_or_default();
    roomy.device() + usable.scale(NOTICEABLE) < fastest.device()
}

#[cfg(test)]
mod tests;
