//! The limits of the run: the largest batch, the longest sequence, the smallest GPU, and so on.

use super::changes::refused;
use super::panel::Panel;
use super::sheet::{Cell, Sheet};
use crate::text;
use crate::worker::{JobKind, Work};
use headroom_advice::{self as strategy, Goal, Slope, SolveFor};
use headroom_core::estimate::{Estimate, Prediction, Unsupported, estimate};
use headroom_scenario::{Case, Scenario, settings};

pub static SOLVE: Panel = Panel {
    kind: JobKind {
        id: "solve",
        start: |scenario, _| Box::new(Job::new(scenario)),
    },
    title: text::HOW_FAR,
    about: text::HOW_FAR_ABOUT,
    head: &["Limit", "Value", "Needs"],
    open: false,
    sortable: false,
};

/// One question, answered with a row.
type Question = Box<dyn Fn(&Scenario) -> Result<Vec<Answer>, Unsupported>>;
type Answer = (String, Cell, Option<Scenario>);

struct Job {
    scenario: Scenario,
    questions: Vec<Question>,
    sheet: Sheet,
    /// Settings of which no value is enough.
    none: Vec<String>,
}

impl Job {
    fn new(scenario: &Scenario) -> Self {
        let mut questions: Vec<Question> = vec![
            Box::new(smallest_memory),
            Box::new(smallest_card),
            Box::new(fewest_gpus),
            Box::new(fewest_checkpoints),
            Box::new(wanted_batch),
        ];
        // A stack: processed from the end.
        questions.extend(
            unknowns(scenario)
                .into_iter()
                .rev()
                .map(|unknown| -> Question {
                    Box::new(move |scenario| largest(scenario, &unknown))
                }),
        );
        Self {
            scenario: scenario.clone(),
            questions,
            sheet: Sheet::default(),
            none: Vec::new(),
        }
    }
}

/// What can be solved for: settings and model dimensions that determine a sample's size.
fn unknowns(scenario: &Scenario) -> Vec<(String, SolveFor)> {
    const SETTINGS: [&str; 3] = ["data.micro_batch", "data.sequence", "training.lora.rank"];
    const DIMS: [&str; 6] = ["img", "peaks", "bins", "edges", "nodes", "frames"];
    let settings = SETTINGS
        .iter()
        .filter_map(|path| settings::find(path))
        .filter(|setting| setting.applies(scenario))
        .map(|setting| {
            (
                setting.label.to_ascii_lowercase(),
                SolveFor::Setting(setting),
            )
        });
    let dims = DIMS
        .iter()
        .filter_map(|name| Some(((*name).to_string(), SolveFor::named(name, scenario)?)));
    settings.chain(dims).collect()
}

fn largest(
    scenario: &Scenario,
    (name, unknown): &(String, SolveFor),
) -> Result<Vec<Answer>, Unsupported> {
    // Image sides stay multiples of a patch.
    let multiple = if name == "img" { 32 } else { 1 };
    let solved = strategy::solve(scenario, unknown, Goal::default(), multiple)?;
    let answer = match (solved.value, solved.slope) {
        (_, Slope::Level) => return Ok(Vec::new()),
        (Some(value), _) => value.to_string().into(),
        (None, _) => text::NONE_FITS.into(),
    };
    let run = solved.value.is_some().then_some(solved.scenario);
    Ok(vec![(text::largest_of(name), answer, run)])
}

#[expect(clippy::unnecessary_wraps, reason = "all questions have one signature")]
fn smallest_card(scenario: &Scenario) -> Result<Vec<Answer>, Unsupported> {
    let found = strategy::smallest_gpu(scenario, Goal::default());
    let answer = found.as_ref().map_or(text::NONE_FITS, |(gpu, _)| gpu.name);
    let run = found.map(|(gpu, _)| strategy::on(scenario, gpu));
    Ok(vec![(text::SMALLEST_CARD.into(), answer.into(), run)])
}

/// Less than the run reserves, because the allocator frees unused blocks when cudaMalloc fails.
fn smallest_memory(scenario: &Scenario) -> Result<Vec<Answer>, Unsupported> {
    let found = Prediction::new(scenario.clone()).smallest_card()?;
    let answer = found.map_or(text::NONE_FITS.into(), |card| Cell::Size(card.usable));
    Ok(vec![(text::LEAST_MEMORY.into(), answer, None)])
}

fn fewest_gpus(scenario: &Scenario) -> Result<Vec<Answer>, Unsupported> {
    let found = strategy::fewest_gpus(scenario, Goal::default())?;
    let answer = found.as_ref().map_or_else(
        || text::NONE_FITS.into(),
        |run| run.hardware.gpus.to_string().into(),
    );
    Ok(vec![(text::FEWEST_CARDS.into(), answer, found)])
}

fn fewest_checkpoints(scenario: &Scenario) -> Result<Vec<Answer>, Unsupported> {
    let has_layers = Case::of(scenario)
        .model
        .is_some_and(|model| model.size("layers").is_some());
    if !has_layers {
        return Ok(Vec::new());
    }
    let found = strategy::checkpointing(scenario, Goal::default())?;
    let answer = found.as_ref().map_or_else(
        || text::NONE_FITS.into(),
        |run| text::checkpointed(run).into(),
    );
    Ok(vec![(text::FEWEST_CHECKPOINTS.into(), answer, found)])
}

fn wanted_batch(scenario: &Scenario) -> Result<Vec<Answer>, Unsupported> {
    let batch = scenario.batch();
    let wanted = batch.wanted.unwrap_or_else(|| batch.samples());
    let found = strategy::accumulate(scenario, wanted, Goal::default())?;
    let answer = found.scenario.as_ref().map_or_else(
        || text::NONE_FITS.into(),
        |run| run.batch().to_string().into(),
    );
    Ok(vec![(text::batch_of(wanted), answer, found.scenario)])
}

impl Work for Job {
    fn is_done(&self) -> bool {
        self.questions.is_empty()
    }

    fn step(&mut self) {
        let Some(ask) = self.questions.pop() else {
            return;
        };
        match ask(&self.scenario) {
            Ok(answers) => {
                for (question, answer, run) in answers {
                    if answer == Cell::from(text::NONE_FITS) {
                        self.none.push(question);
                        continue;
                    }
                    let needs = |run: &Scenario| estimate(run).ok();
                    let needs = run.as_ref().and_then(needs);
                    let size = |estimate: Estimate| Cell::Size(estimate.device.expected);
                    let cells = vec![question.into(), answer, needs.map_or("–".into(), size)];
                    self.sheet.row(run.as_ref(), cells);
                }
            }
            Err(problem) => self.sheet.messages = refused(problem).messages,
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut sheet = self.sheet.clone();
        if !self.none.is_empty() {
            sheet.line(text::none_enough(&self.none.join(", ")));
        }
        sheet.lines()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    fn asked(change: impl FnOnce(&mut Scenario)) -> Sheet {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 1)].into();
        change(&mut scenario);
        let mut work = Job::new(&scenario);
        while !work.is_done() {
            work.step();
        }
        Sheet::read(&work.lines())
    }

    #[test]
    fn each_question_has_an_answer() {
        let sheet = asked(|_| {});
        assert_eq!(
            sheet.rows[0].cells[0],
            Cell::Text(text::largest_of("micro-batch"))
        );
        assert_eq!((sheet.rows.len(), sheet.messages), (7, vec![]));
    }

    #[test]
    fn what_no_value_of_is_enough_is_said_once() {
        let sheet = asked(|scenario| scenario.hardware.memory_mib = NonZero::new(700));
        assert_eq!(sheet.messages.len(), 1);
        assert!(
            sheet.messages[0].contains(&text::largest_of("micro-batch")),
            "{:?}",
            sheet.messages
        );
        assert!(
            sheet
                .rows
                .iter()
                .all(|row| row.cells[1] != Cell::from(text::NONE_FITS))
        );
    }
}
