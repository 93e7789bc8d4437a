//! Every change by itself.

use super::panel::Panel;
use super::sheet::{Cell, Sheet};
use crate::shared::preferences::Limits;
use crate::shared::worker::{JobKind, Work};
use crate::text;
use headroom_advice::{self as strategy, Cost, FOLKLORE};
use headroom_core::estimate::time::StepTime;
use headroom_core::estimate::{Prediction, Unsupported};
use headroom_io::export::{self, Target};
use headroom_scenario::Scenario;

/// The columns of every table of changes.
const HEAD: &[&str] = &[
    "Change",
    "Saves",
    "Needs",
    "Step time",
    "Quality",
    "Supported by",
];

/// Every possible change by itself.
pub static MOVES: Panel = Panel {
    kind: JobKind {
        id: "moves",
        start: |scenario, limits| Box::new(Moves::new(scenario, limits)),
    },
    title: text::EVERY_CHANGE,
    about: text::EVERY_CHANGE_ABOUT,
    head: HEAD,
    open: false,
    sortable: true,
};

type Make = fn(&Scenario, Limits) -> Result<Sheet, Unsupported>;

/// A job that is done in one piece.
pub struct Once {
    scenario: Scenario,
    limits: Limits,
    work: Make,
    found: Option<Sheet>,
}

impl Once {
    pub fn start(scenario: &Scenario, limits: &str, work: Make) -> Box<dyn Work> {
        Box::new(Self {
            scenario: scenario.clone(),
            limits: Limits::read(limits),
            work,
            found: None,
        })
    }
}

impl Work for Once {
    fn is_done(&self) -> bool {
        self.found.is_some()
    }

    fn step(&mut self) {
        let made = (self.work)(&self.scenario, self.limits);
        self.found = Some(made.unwrap_or_else(refused));
    }

    fn lines(&self) -> Vec<String> {
        self.found.as_ref().map(Sheet::lines).unwrap_or_default()
    }
}

/// A sheet with the reason why there is no table.
pub fn refused(unsupported: Unsupported) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line(unsupported.to_string());
    sheet
}

/// A change's effect on quality; empty if the results are the same.
pub fn quality(cost: Cost, said: &str) -> String {
    match (cost, said) {
        (Cost::Free | Cost::Time, _) => text::SAME_RESULTS.into(),
        (Cost::Results, "") => text::CHANGES_RESULTS.into(),
        (Cost::Results, said) => said.into(),
    }
}

pub fn seconds(time: Option<&StepTime>) -> Cell {
    time.map_or("–".into(), |time| {
        Cell::Shown(time.step.expected.get(), time.step.expected.to_string())
    })
}

/// The programs that can run a scenario.
pub fn programs(scenario: &Scenario) -> String {
    let estimate = headroom_core::estimate::Estimate::default();
    let able = export::targets()
        .iter()
        .filter(|target| (target.write)(scenario, &estimate).is_ok());
    named(able.map(short).collect())
}

/// A program's name without its explanation.
fn short(target: &Target) -> &'static str {
    target.title.split(" (").next().unwrap_or(target.title)
}

/// The first few names, and how many more there are.
fn named(names: Vec<&str>) -> String {
    const MOST: usize = 4;
    match names.len() {
        0 => text::NO_PROGRAM.into(),
        count if count <= MOST => names.join(", "),
        count => {
            let first: Vec<_> = names.into_iter().take(MOST - 1).collect();
            format!("{} and {} more", first.join(", "), count - first.len())
        }
    }
}

/// Each move's effect, one at a time.
struct Moves {
    before: Prediction,
    limits: Limits,
    next: usize,
    sheet: Sheet,
}

impl Moves {
    fn new(scenario: &Scenario, limits: &str) -> Self {
        Self {
            before: Prediction::new(scenario.clone()),
            limits: Limits::read(limits),
            next: 0,
            sheet: Sheet::default(),
        }
    }

    /// Folklore: what people also try, and what it really does.
    fn folklore(&mut self) {
        self.next += 1;
        for tale in FOLKLORE {
            let note = format!("{} {} ({})", tale.claim, tale.truth, tale.source);
            self.sheet
                .row(None, vec![Cell::Note(tale.title.into(), note)]);
        }
    }
}

impl Work for Moves {
    fn is_done(&self) -> bool {
        self.before.estimate().is_err() || self.next > strategy::MOVES.len()
    }

    fn step(&mut self) {
        let (Some(change), Ok(before)) = (strategy::MOVES.get(self.next), self.before.estimate())
        else {
            self.folklore();
            return;
        };
        self.next += 1;
        if !self.limits.keep.allows(change) {
            return;
        }
        let Ok(Some(effect)) = strategy::effect(&self.before, change) else {
            return;
        };
        let able = export::expressing(self.before.scenario(), &effect.scenario);
        if let Some(program) = self.limits.program
            && !able.iter().any(|target| target.id == program.id)
        {
            return;
        }
        let slower = effect.slower.map_or("–".into(), |part| {
            Cell::Shown(part, text::percent_more(part))
        });
        let (from, to) = (before.device.expected, effect.estimate.device.expected);
        let why = [change.what, change.speed, change.caveat].join(" ");
        self.sheet.row(
            Some(&effect.scenario),
            vec![
                Cell::Note(change.title.into(), why),
                Cell::Change(from, to),
                Cell::Size(to),
                slower,
                quality(change.cost, change.quality).into(),
                named(able.into_iter().map(short).collect()).into(),
            ],
        );
    }

    fn lines(&self) -> Vec<String> {
        self.sheet.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::share;

    #[track_caller]
    fn done(panel: &Panel, limits: &str) -> Sheet {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        scenario.data.sequence = 64;
        let mut work = (panel.kind.start)(&scenario, limits);
        for _ in 0..1000 {
            if work.is_done() {
                break;
            }
            work.step();
        }
        let sheet = Sheet::read(&work.lines());
        for row in &sheet.rows {
            assert!(row.cells.len() <= panel.head.len(), "{row:?}");
            let link = row.link.as_deref().unwrap_or("v=1");
            assert_eq!(share::read(link).problems, [], "{link}");
        }
        sheet
    }

    #[test]
    fn every_possible_change_and_folklore_has_a_row() {
        let sheet = done(&MOVES, "0000 ");
        let offered = sheet.rows.iter().filter(|row| row.link.is_some()).count();
        assert!(offered > 5 && sheet.rows.len() == offered + FOLKLORE.len());
        let locked = done(&MOVES, "1111 ");
        assert!(locked.rows.len() < sheet.rows.len());
        let of_program = done(&MOVES, "0000 trl");
        assert!(of_program.rows.len() < sheet.rows.len());
    }
}
