//! How several GPUs can share the run: all degrees of parallelism that they, the model and the batch admit.

use super::Panel;
use super::changes::{programs, refused};
use super::sheet::{Cell, Sheet};
use crate::text;
use crate::worker::{JobKind, Work};
use headroom_advice::{Goal, Layout, LayoutSearch};
use headroom_core::estimate::Unsupported;
use headroom_scenario::{Checkpointing, Parallelism, Scenario, settings};

pub static LAYOUTS: Panel = Panel {
    kind: JobKind {
        id: "layouts",
        start: |scenario, _| Box::new(Job::new(scenario)),
    },
    title: text::LAYOUTS,
    about: text::LAYOUTS_ABOUT,
    head: &["Layout", "Needs", "A step takes", "Fits", "Runs in"],
    open: false,
    sortable: true,
};

struct Job {
    search: Result<LayoutSearch, Unsupported>,
}

impl Job {
    fn new(scenario: &Scenario) -> Self {
        let gpus = scenario.hardware.gpus;
        Self {
            search: LayoutSearch::new(scenario, gpus, Goal::default()),
        }
    }
}

impl Work for Job {
    fn is_done(&self) -> bool {
        self.search.as_ref().map_or(true, LayoutSearch::is_done)
    }

    fn step(&mut self) {
        if let Ok(search) = &mut self.search
            && let Err(unsupported) = search.step()
        {
            self.search = Err(unsupported);
        }
    }

    fn lines(&self) -> Vec<String> {
        match &self.search {
            Err(unsupported) => refused(unsupported.clone()).lines(),
            Ok(search) => sheet(search).lines(),
        }
    }
}

fn sheet(search: &LayoutSearch) -> Sheet {
    let mut sheet = Sheet::default();
    let found = search.found();
    if !search.is_done() {
        sheet.say(text::layouts_tried(found.tried));
        return sheet;
    }
    sheet.say(text::layouts_found(
        found.tried,
        found.too_large,
        found.left_out,
    ));
    if found.best.is_none() {
        sheet.say(text::NO_LAYOUT);
    }
    for layout in &found.front {
        row(&mut sheet, layout, String::new());
    }
    if let Some(fewest) = &found.fewest {
        let note = text::fewest_gpus(fewest.scenario.hardware.gpus);
        row(&mut sheet, fewest, note);
    }
    sheet
}

fn row(sheet: &mut Sheet, layout: &Layout, note: String) {
    let fits = if layout.fits { "yes" } else { "no" };
    let time = layout.time.expected;
    sheet.row(
        Some(&layout.scenario),
        vec![
            Cell::Note(name(&layout.scenario), note),
            Cell::Size(layout.estimate.device.expected),
            Cell::Shown(time.get(), time.to_string()),
            fits.into(),
            programs(&layout.scenario).into(),
        ],
    );
}

/// "FSDP 2, tensor 2, pipeline 2; micro-batch 4, checkpointed".
fn name(scenario: &Scenario) -> String {
    let parallel = &scenario.parallel;
    let mut words = Vec::new();
    let copies = scenario.hardware.gpus > parallel.tp * parallel.pp * parallel.cp;
    if copies || parallel.strategy != Parallelism::Ddp {
        let strategy = settings::find("parallel.strategy");
        words.extend(strategy.map(|setting| headroom_io::export::shown(setting, scenario)));
    }
    let degrees = [
        ("tensor", parallel.tp),
        ("pipeline", parallel.pp),
        ("context", parallel.cp),
    ];
    let degrees = degrees.iter().filter(|(_, degree)| *degree > 1);
    words.extend(degrees.map(|(name, degree)| format!("{name} {degree}")));
    let checkpointed = match scenario.training.checkpointing {
        Checkpointing::None => "",
        _ => ", checkpointed",
    };
    format!(
        "{}; micro-batch {}{checkpointed}",
        words.join(", "),
        scenario.data.micro_batch
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_named_and_can_be_taken() {
        let mut scenario = Scenario::default();
        let small = [("layers", 2), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        scenario.data.sequence = 64;
        scenario.hardware.gpus = 2;
        let mut work = Job::new(&scenario);
        let mut said = Vec::new();
        while !work.is_done() {
            work.step();
            said.push(Sheet::read(&work.lines()));
        }
        assert!(said.len() > 2, "it says how far it is");
        let last = said.pop().unwrap();
        assert!(!last.rows.is_empty(), "{last:?}");
        for row in &last.rows {
            let link = row.link.as_deref().unwrap();
            assert_eq!(headroom_scenario::share::read(link).problems, [], "{link}");
            assert!(matches!(&row.cells[0], Cell::Note(name, _) if name.contains("micro-batch")));
        }
    }
}
