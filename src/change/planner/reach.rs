//! How far the run can go over all plans: the largest batch, the longest sequence, and the smallest GPUs.

use super::cloud::instances;
use crate::change::advice::{Cell, Panel, Sheet, seconds};
use crate::shared::preferences::Limits;
use crate::shared::worker::{JobKind, Work};
use crate::text;
use headroom_advice::planner::{self, OnCards, Plan, PlanId, Reach, Reached};
use headroom_catalog as catalog;
use headroom_scenario::{Scenario, settings};

pub const REACH: JobKind = JobKind {
    id: "reach",
    start: |scenario, limits| Box::new(Pieces::new(scenario, limits, 2, reached)),
};

pub const CARDS: JobKind = JobKind {
    id: "cards",
    start: |scenario, limits| Box::new(Pieces::new(scenario, limits, 1, cards)),
};

pub static REACH_PANEL: Panel = Panel {
    kind: REACH,
    title: text::HOW_FAR,
    about: text::HOW_FAR_ABOUT,
    head: &["Largest", "Needs", "Step time"],
    open: false,
    sortable: false,
};

pub static CARDS_PANEL: Panel = Panel {
    kind: CARDS,
    title: text::WHICH_GPUS,
    about: text::WHICH_GPUS_ABOUT,
    head: &["GPUs", "Needs", "Usable", "Step time"],
    open: false,
    sortable: true,
};

/// A job of a few pieces, each of which adds to a sheet.
struct Pieces {
    scenario: Scenario,
    limits: Limits,
    all: usize,
    done: usize,
    work: fn(&Scenario, Limits, usize, &mut Sheet),
    sheet: Sheet,
}

impl Pieces {
    fn new(
        scenario: &Scenario,
        limits: &str,
        all: usize,
        work: fn(&Scenario, Limits, usize, &mut Sheet),
    ) -> Self {
        Self {
            scenario: scenario.clone(),
            limits: Limits::read(limits),
            all,
            done: 0,
            work,
            sheet: Sheet::default(),
        }
    }
}

impl Work for Pieces {
    fn is_done(&self) -> bool {
        self.done >= self.all
    }

    fn step(&mut self) {
        (self.work)(&self.scenario, self.limits, self.done, &mut self.sheet);
        self.done += 1;
    }

    fn lines(&self) -> Vec<String> {
        self.sheet.lines()
    }
}

fn reached(run: &Scenario, limits: Limits, piece: usize, sheet: &mut Sheet) {
    let what = if piece == 0 {
        Reach::Batch
    } else {
        Reach::Length
    };
    // Most models of images have no length.
    if what == Reach::Length && (run.data.sequence <= 1 || !settings::takes_length(run)) {
        return;
    }
    let run = match limits.startable(run) {
        Ok(run) => run.scenario,
        Err(message) => return sheet.line(message),
    };
    match planner::reach(&run, what, &limits.locks()) {
        Err(problem) => sheet.line(text::unsupported(&problem)),
        Ok(None) => sheet.line(text::fits_at_no(what.label())),
        Ok(Some(Reached { value, plans })) => {
            let plan = plans.find(PlanId::Fastest).or_else(|| plans.plans.first());
            if let Some(plan) = plan {
                row(sheet, plan, text::largest_is(what.label(), value));
            }
        }
    }
}

fn row(sheet: &mut Sheet, plan: &Plan, title: String) {
    sheet.row(
        Some(&plan.full.scenario),
        vec![
            Cell::Note(title, with(plan)),
            Cell::Size(plan.full.device()),
            seconds(plan.full.time.as_ref()),
        ],
    );
}

/// The changes of a plan, in words.
fn with(plan: &Plan) -> String {
    let steps: Vec<&str> = plan.changes.iter().map(|it| it.text.as_str()).collect();
    text::with_changes(&steps.join("; "))
}

fn cards(run: &Scenario, limits: Limits, _: usize, sheet: &mut Sheet) {
    let run = match limits.startable(run) {
        Ok(run) => run.scenario,
        Err(message) => return sheet.line(message),
    };
    let found = planner::cards(&run, &limits.locks());
    if found.is_empty() {
        sheet.line(text::NO_GPU);
    }
    for OnCards { gpu, gpus, plan } in found {
        let Some(card) = catalog::gpu(gpu) else {
            continue;
        };
        let memory = card.memory.marketing_gb;
        let note = [format!("{memory} GB"), instances(gpu).into(), with(&plan)];
        let note: Vec<String> = note.into_iter().filter(|note| !note.is_empty()).collect();
        sheet.row(
            Some(&plan.full.scenario),
            vec![
                Cell::Note(text::gpus_of(gpus, card.name), note.join(" · ")),
                Cell::Size(plan.full.device()),
                plan.full.estimate.usable.map_or("–".into(), Cell::Size),
                seconds(plan.full.time.as_ref()),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_run_goes_is_found_with_plans() {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        scenario.data.sequence = 128;
        scenario.hardware.memory_mib = std::num::NonZero::new(2000);
        for (kind, panel) in [(REACH, &REACH_PANEL), (CARDS, &CARDS_PANEL)] {
            let mut work = (kind.start)(&scenario, "");
            while !work.is_done() {
                work.step();
            }
            let sheet = Sheet::read(&work.lines());
            assert!(!sheet.rows.is_empty(), "{}: {sheet:?}", kind.id);
            for row in &sheet.rows {
                assert_eq!(row.cells.len(), panel.head.len(), "{row:?}");
                assert!(row.link.is_some());
            }
        }
    }
}
