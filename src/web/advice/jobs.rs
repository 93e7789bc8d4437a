//! The tables: the ladder, every move, the tiers, every card.

use super::Panel;
use super::sheet::{Cell, Sheet};
use crate::estimate::time::StepTime;
use crate::estimate::{Fit, Prediction, Unsupported, estimate};
use crate::scenario::Scenario;
use crate::strategy::{self, Cost, FOLKLORE, Goal, Tier};
use crate::web::text;
use crate::web::worker::{JobKind, Work};

/// The shortest way to a run that fits.
pub static LADDER: Panel = Panel {
    kind: JobKind {
        id: "ladder",
        start: |scenario| Once::start(scenario, ladder),
    },
    title: text::WHAT_TO_CHANGE,
    about: text::LADDER_ABOUT,
    head: &["Change", "Costs", "A step takes", "Memory", "Then needs"],
    numbers: 3,
    open: true,
    sortable: false,
};

/// Every change that is possible, by itself.
pub static MOVES: Panel = Panel {
    kind: JobKind {
        id: "moves",
        start: |scenario| Box::new(Moves::new(scenario)),
    },
    title: text::EVERY_CHANGE,
    about: text::EVERY_CHANGE_ABOUT,
    head: &["Change", "Costs", "A step takes", "Memory", "Then needs"],
    numbers: 3,
    open: false,
    sortable: false,
};

/// Runs for a card that is to be so full.
pub static TIERS: Panel = Panel {
    kind: JobKind {
        id: "tiers",
        start: |scenario| Once::start(scenario, tiers),
    },
    title: text::TIERS,
    about: text::TIERS_ABOUT,
    head: &["Tier", "Changes", "Batch", "A step takes", "Needs"],
    numbers: 3,
    open: false,
    sortable: false,
};

/// The same run on every card.
pub static GPUS: Panel = Panel {
    kind: JobKind {
        id: "gpus",
        start: |scenario| Once::start(scenario, gpus),
    },
    title: text::OTHER_CARDS,
    about: text::OTHER_CARDS_ABOUT,
    head: &[
        "Card",
        "This run",
        "Largest micro-batch",
        "A step takes",
        "Needs",
        "Usable",
    ],
    numbers: 4,
    open: false,
    sortable: true,
};

/// Work that is one piece.
pub struct Once {
    scenario: Scenario,
    work: fn(&Scenario) -> Result<Sheet, Unsupported>,
    found: Option<Sheet>,
}

impl Once {
    pub fn start(
        scenario: &Scenario,
        work: fn(&Scenario) -> Result<Sheet, Unsupported>,
    ) -> Box<dyn Work> {
        Box::new(Self {
            scenario: scenario.clone(),
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
        self.found = Some((self.work)(&self.scenario).unwrap_or_else(refused));
    }

    fn lines(&self) -> Vec<String> {
        self.found.as_ref().map(Sheet::lines).unwrap_or_default()
    }
}

/// A sheet that says why there is none.
pub fn refused(unsupported: Unsupported) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.say(unsupported.to_string());
    sheet
}

pub const fn costs(cost: Cost) -> &'static str {
    match cost {
        Cost::Free => text::COSTS_NOTHING,
        Cost::Time => text::COSTS_TIME,
        Cost::Results => text::CHANGES_RESULTS,
    }
}

fn takes(time: Option<&StepTime>) -> Cell {
    time.map_or("–".into(), |it| it.step.expected.to_string())
        .into()
}

fn ladder(scenario: &Scenario) -> Result<Sheet, Unsupported> {
    let mut ladder = strategy::ladder(scenario, Goal::default())?;
    let mut sheet = Sheet::default();
    if ladder.fits && ladder.steps.is_empty() && ladder.start.fit() == Some(Fit::Probably) {
        ladder = strategy::ladder(scenario, Goal::sure(&ladder.start))?;
        sheet.say(if ladder.fits {
            text::FITS_PROBABLY
        } else {
            text::FITS_PROBABLY_AT_BEST
        });
    } else {
        sheet.say(match (ladder.fits, ladder.steps.is_empty()) {
            (true, true) => text::FITS_AS_IT_IS,
            (true, false) => text::LADDER,
            (false, _) => text::LADDER_FAILS,
        });
    }
    let mut before = ladder.start.device.expected;
    for step in &ladder.steps {
        let after = step.estimate.device.expected;
        sheet.row(
            Some(&step.scenario),
            vec![
                Cell::Note(
                    step.title.clone(),
                    format!("{} {}", step.speed, step.quality),
                ),
                costs(step.cost).into(),
                takes(step.time.as_ref()),
                Cell::Change(before, after),
                Cell::Size(after),
            ],
        );
        before = after;
    }
    for other in &ladder.alternatives {
        sheet.row(
            Some(&other.scenario),
            vec![
                Cell::Note(text::OR.into(), other.ids.join(", ")),
                "".into(),
                other.time.expected.to_string().into(),
                "".into(),
                Cell::Size(estimate(&other.scenario)?.device.expected),
            ],
        );
    }
    Ok(sheet)
}

/// Each move's effect, one at a time.
struct Moves {
    before: Prediction,
    next: usize,
    sheet: Sheet,
}

impl Moves {
    fn new(scenario: &Scenario) -> Self {
        Self {
            before: Prediction::new(scenario.clone()),
            next: 0,
            sheet: Sheet::default(),
        }
    }
}

impl Work for Moves {
    fn is_done(&self) -> bool {
        self.before.estimate().is_err() || self.next > strategy::MOVES.len()
    }

    fn step(&mut self) {
        let (Some(it), Ok(before)) = (strategy::MOVES.get(self.next), self.before.estimate())
        else {
            self.folklore();
            return;
        };
        self.next += 1;
        let Ok(Some(effect)) = strategy::effect(&self.before, it) else {
            return;
        };
        let slower = effect
            .slower
            .map_or("–".into(), |part| format!("{:+.0} %", part * 100.0));
        let (from, to) = (before.device.expected, effect.estimate.device.expected);
        let why = [it.what, it.speed, it.quality, it.caveat].join(" ");
        self.sheet.row(
            Some(&effect.scenario),
            vec![
                Cell::Note(it.title.into(), why),
                costs(it.cost).into(),
                slower.into(),
                Cell::Change(from, to),
                Cell::Size(to),
            ],
        );
    }

    fn lines(&self) -> Vec<String> {
        self.sheet.lines()
    }
}

impl Moves {
    /// What people try besides, and what it really does.
    fn folklore(&mut self) {
        self.next += 1;
        for it in FOLKLORE {
            let note = format!("{} {} {}", it.claim, it.truth, it.source);
            let cells = vec![Cell::Note(it.title.into(), note), text::NOT_OFFERED.into()];
            self.sheet.row(None, cells);
        }
    }
}

fn tiers(scenario: &Scenario) -> Result<Sheet, Unsupported> {
    let mut sheet = Sheet::default();
    for it in strategy::tiers(scenario)? {
        let name = |tier: Tier| Cell::Note(tier.id().into(), tier.about().into());
        let steps = it.ladder.iter().flat_map(|it| &it.steps);
        let changes: Vec<_> = steps.map(|it| it.title.as_str()).collect();
        let run = it.scenario.as_ref();
        let batch = run.map_or_else(|| text::NO_WAY.into(), |it| it.batch().to_string());
        sheet.row(
            run,
            vec![
                name(it.tier),
                changes.join(", ").into(),
                batch.into(),
                takes(it.time.as_ref()),
                Cell::Size(it.estimate.device.expected),
            ],
        );
    }
    Ok(sheet)
}

#[expect(clippy::unnecessary_wraps, reason = "all work has one form")]
fn gpus(scenario: &Scenario) -> Result<Sheet, Unsupported> {
    let mut sheet = Sheet::default();
    let rows = strategy::sort_gpus(strategy::gpus(scenario), strategy::By::Time);
    for it in rows {
        let mut there = scenario.clone();
        there.hardware.gpu = it.gpu.id.into();
        there.hardware.memory_mib = 0;
        let none = || Cell::from("–");
        let verdict = match it.problem.as_str() {
            "" => it.verdict.id().into(),
            problem => Cell::Note(it.verdict.id().into(), problem.into()),
        };
        sheet.row(
            Some(&there),
            vec![
                it.gpu.name.into(),
                verdict,
                it.micro_batch.map_or_else(none, |it| it.to_string().into()),
                it.time.map_or_else(none, |it| {
                    Cell::Shown(it.expected.get(), it.expected.to_string())
                }),
                it.device.map_or_else(none, |it| Cell::Size(it.expected)),
                it.usable.map_or_else(none, Cell::Size),
            ],
        );
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share;

    #[track_caller]
    fn done(panel: &Panel, change: impl FnOnce(&mut Scenario)) -> Sheet {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        scenario.data.sequence = 64;
        change(&mut scenario);
        let mut work = (panel.kind.start)(&scenario);
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
    fn the_ladder_says_what_to_change_or_that_nothing_must() {
        let sheet = done(&LADDER, |it| {
            it.data.micro_batch = 1024;
            it.hardware.memory_mib = 1500;
        });
        assert_eq!(sheet.says, [text::LADDER]);
        assert!(!sheet.rows.is_empty());
        let sheet = done(&LADDER, |it| {
            it.data.micro_batch = 1024;
            let needed = estimate(it).unwrap().device.expected;
            it.hardware.memory_mib = needed.get().div_ceil(1 << 20);
        });
        assert_eq!(sheet.says, [text::FITS_PROBABLY]);
        assert!(!sheet.rows.is_empty());
        let sheet = done(&LADDER, |it| it.data.micro_batch = 1);
        assert_eq!(
            (sheet.says, sheet.rows),
            (vec![text::FITS_AS_IT_IS.into()], vec![])
        );
    }

    #[test]
    fn every_possible_change_and_every_tale_has_a_row() {
        let sheet = done(&MOVES, |_| {});
        let offered = sheet.rows.iter().filter(|it| it.link.is_some()).count();
        assert!(offered > 5 && sheet.rows.len() == offered + FOLKLORE.len());
    }

    #[test]
    fn there_are_four_tiers() {
        assert_eq!(done(&TIERS, |_| {}).rows.len(), 4);
    }

    #[test]
    fn every_card_has_a_row() {
        assert_eq!(done(&GPUS, |_| {}).rows.len(), crate::catalog::gpus().len());
    }
}
