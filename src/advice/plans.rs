//! Plans: whole runs that fit, each applied by one button.

use super::changes::{programs, refused};
use super::panel::Panel;
use super::sheet::{Cell, Sheet};
use crate::preferences::Limits;
use crate::text;
use crate::worker::{JobKind, Work};
use headroom_advice::planner::{Plan, Planner, Plans};
use headroom_core::estimate::Fit;
use headroom_scenario::Scenario;

/// At most three plans, or what must be unlocked.
pub static LADDER: Panel = Panel {
    kind: JobKind {
        id: "ladder",
        start: |scenario, limits| Box::new(Job::new(scenario, Limits::read(limits))),
    },
    title: text::WHAT_TO_CHANGE,
    about: text::PLANS_ABOUT,
    head: super::changes::HEAD,
    open: true,
    sortable: false,
};

/// A planner at work, and its result.
struct Job {
    planner: Option<Planner>,
    sheet: Sheet,
}

impl Job {
    fn new(scenario: &Scenario, limits: Limits) -> Self {
        match Planner::new(scenario, limits.locks()) {
            Ok(planner) => Self {
                planner: Some(planner),
                sheet: Sheet::default(),
            },
            Err(problem) => Self {
                planner: None,
                sheet: refused(problem),
            },
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
            self.sheet = sheet(&planner.finish());
        } else {
            self.planner = Some(planner);
        }
    }

    fn lines(&self) -> Vec<String> {
        self.sheet.lines()
    }
}

fn sheet(plans: &Plans) -> Sheet {
    let mut sheet = Sheet::default();
    let fits = plans.now.estimate.fit();
    sheet.line(match (fits, plans.fits()) {
        (Some(Fit::Fits), _) => text::FITS_AS_IT_IS,
        (Some(Fit::Probably), true) => text::FITS_PROBABLY,
        (_, true) => text::WHOLE_RUNS,
        (_, false) if plans.unlock.is_empty() => text::NOTHING_HELPS,
        (_, false) => text::UNLOCK,
    });
    for plan in &plans.plans {
        if !plan.changes.is_empty() {
            row(&mut sheet, plans, plan.id.label(), plan);
        }
    }
    for unlock in &plans.unlock {
        row(&mut sheet, plans, &unlock.text, &unlock.plan);
    }
    sheet
}

fn row(sheet: &mut Sheet, plans: &Plans, name: &str, plan: &Plan) {
    let steps: Vec<&str> = plan.changes.iter().map(|it| it.text.as_str()).collect();
    let reasons = plan.changes.iter().map(|it| it.why.as_str());
    let reasons: Vec<&str> = reasons.collect();
    let now = plans.now.estimate.device.expected + plans.now.estimate.growth;
    let needs = plan.full.device();
    let time = plan.full.time.as_ref().map(|time| time.step.expected);
    sheet.row(
        Some(&plan.full.scenario),
        vec![
            Cell::Note(format!("{name}: {}", steps.join("; ")), reasons.join(". ")),
            Cell::Change(now, needs),
            Cell::Size(needs),
            time.map_or("–".into(), |time| {
                Cell::Shown(time.get(), time.to_string())
            }),
            plan.results.label().into(),
            programs(&plan.full.scenario).into(),
        ],
    );
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use headroom_scenario::share;

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
        let sheet = Sheet::read(&work.lines());
        assert_eq!(sheet.messages, [message]);
        assert!(sheet.rows.len() >= least && sheet.rows.len() <= 5);
        for row in &sheet.rows {
            assert_eq!(row.cells.len(), LADDER.head.len(), "{row:?}");
            let link = row.link.as_deref().unwrap();
            assert_eq!(share::read(link).problems, [], "{link}");
        }
    }

    #[test]
    fn plans_are_rows_that_can_be_applied() {
        let too_small = |scenario: &mut Scenario| {
            scenario.data.micro_batch = 1024;
            scenario.hardware.memory_mib = NonZero::new(1500);
        };
        check(too_small, text::WHOLE_RUNS, 1);
        check(
            |scenario| scenario.data.micro_batch = 1,
            text::FITS_AS_IT_IS,
            0,
        );
    }
}
