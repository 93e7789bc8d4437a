//! The worker's job: the planner, step by step.

use super::proposal::{Found, Kind, Proposal};
use crate::change::advice::programs;
use crate::shared::preferences::Limits;
use crate::shared::worker::{JobKind, Work};
use crate::text;
use headroom_advice::planner::{Change, Full, Plan, Planner, Plans};
use headroom_core::estimate::Fit;
use headroom_scenario::{Scenario, share};

pub const KIND: JobKind = JobKind {
    id: "planner",
    start: |scenario, limits| Box::new(Job::new(scenario, Limits::read(limits))),
};

/// A planner at work, and its result.
struct Job {
    planner: Option<Planner>,
    found: Found,
    /// What the chosen program needs besides, in words.
    needed: String,
}

impl Job {
    fn new(scenario: &Scenario, limits: Limits) -> Self {
        let program = limits.program.map_or("", |target| target.title);
        let started = limits.startable(scenario).and_then(|run| {
            let needed = run.line(program);
            let planner = Planner::new(&run.scenario, limits.locks());
            let planner = planner.map_err(|problem| text::unsupported(&problem))?;
            Ok((planner, needed))
        });
        let (planner, needed, message) = match started {
            Ok((planner, needed)) => (Some(planner), needed, String::new()),
            Err(message) => (None, None, message),
        };
        Self {
            planner,
            found: Found {
                message,
                runs: Vec::new(),
            },
            needed: needed.map(|line| text::sentence(&line)).unwrap_or_default(),
        }
    }
}

impl Work for Job {
    fn is_done(&self) -> bool {
        self.planner.is_none()
    }

    fn step(&mut self) {
        let Some(mut planner) = self.planner.take() else {
            return;
        };
        planner.step();
        if planner.is_done() {
            self.found = found(&planner.finish());
            self.found.message.insert_str(0, &self.needed);
        } else {
            self.planner = Some(planner);
        }
    }

    fn lines(&self) -> Vec<String> {
        self.found.lines()
    }
}

fn found(plans: &Plans) -> Found {
    let better = plans.plans.iter().any(|plan| !plan.changes.is_empty());
    let message = match (plans.now.estimate.fit(), plans.fits()) {
        (Some(Fit::Fits), _) if better => text::COULD_BE_FASTER,
        (Some(Fit::Fits), _) => text::NOTHING_FASTER,
        (Some(Fit::Probably), true) => text::FITS_PROBABLY,
        (_, true) => text::WHOLE_RUNS,
        (_, false) if plans.unlock.is_empty() => text::NOTHING_HELPS,
        (_, false) => text::UNLOCK,
    };
    let now = Proposal {
        kind: Kind::Now,
        name: text::AS_IT_IS.into(),
        steps: String::new(),
        changes: Vec::new(),
        results: String::new(),
        programs: String::new(),
        needs: plans.now.estimate.device.expected + plans.now.estimate.growth,
        seconds: plans.now.seconds,
        fits: matches!(plans.now.estimate.fit(), Some(Fit::Fits | Fit::Probably)),
        link: String::new(),
    };
    let mut runs = vec![now];
    for plan in plans.plans.iter().filter(|plan| !plan.changes.is_empty()) {
        runs.push(whole(Kind::Plan, plan.id.label(), plan));
    }
    for unlock in &plans.unlock {
        runs.push(whole(Kind::Unlock, &unlock.text, &unlock.plan));
    }
    let mut steps = Vec::new();
    for plan in &plans.plans {
        // The last step is the plan.
        let rest = plan.changes.iter().rev().skip(1);
        steps.extend(rest.map(|change| step(plan, change)));
    }
    let known: Vec<String> = runs.iter().map(|run| run.link.clone()).collect();
    for step in steps {
        let twice = runs.iter().any(|run| run.link == step.link);
        if !twice && !known.contains(&step.link) {
            runs.push(step);
        }
    }
    Found {
        message: message.into(),
        runs,
    }
}

fn whole(kind: Kind, name: &str, plan: &Plan) -> Proposal {
    let steps: Vec<&str> = plan.changes.iter().map(|it| it.text.as_str()).collect();
    Proposal {
        kind,
        name: name.into(),
        steps: steps.join("; "),
        changes: plan.changes.iter().map(does).collect(),
        results: plan.results.label().into(),
        programs: programs(&plan.full.scenario),
        ..figures(&plan.full)
    }
}

fn does(change: &Change) -> (String, String) {
    (change.text.clone(), change.why.clone())
}

fn step(plan: &Plan, change: &Change) -> Proposal {
    Proposal {
        kind: Kind::Step,
        name: text::on_the_way(plan.id.label()),
        steps: change.text.clone(),
        changes: vec![does(change)],
        ..figures(&change.after)
    }
}

fn figures(full: &Full) -> Proposal {
    Proposal {
        kind: Kind::Plan,
        name: String::new(),
        steps: String::new(),
        changes: Vec::new(),
        results: String::new(),
        programs: String::new(),
        needs: full.device(),
        seconds: full.time.as_ref().map(|time| time.step.expected.get()),
        fits: full.fits(),
        link: share::write(&full.scenario),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Scenario), message: &str, least: usize) {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        scenario.data.sequence = 64;
        change(&mut scenario);
        let mut work = Job::new(&scenario, Limits::default());
        while !work.is_done() {
            work.step();
        }
        let found = Found::read(&work.lines());
        assert_eq!(found.message, message);
        assert!(found.plans().count() >= least && found.plans().count() <= 5);
        for run in found.plans() {
            assert!(!run.steps.is_empty() && !run.programs.is_empty(), "{run:?}");
            assert_eq!(share::read(&run.link).problems, [], "{run:?}");
        }
        assert_eq!(found.runs[0].kind, Kind::Now);
    }

    #[test]
    fn plans_are_runs_that_can_be_applied() {
        let too_small = |scenario: &mut Scenario| {
            scenario.data.micro_batch = 1024;
            scenario.hardware.memory_mib = NonZero::new(1500);
        };
        check(too_small, text::WHOLE_RUNS, 1);
    }
}
