//! The page's state: one draft, and everything derived from it.

use std::sync::Arc;

use leptos::prelude::*;

use crate::shared::draft::{Draft, Shown};
use crate::shared::graphs::Graphs;
use crate::shared::history::History;
use crate::shared::plan_store::{self, Plans};
use crate::shared::signals::{memo, memo_after};
use crate::text;
use headroom_base::units::UnitStyle;
use headroom_core::estimate::{Estimate, Prediction, Unsupported};
use headroom_io::import::snapshot::Snapshot;
use headroom_scenario::presets::Preset;
use headroom_scenario::resolve::{Resolved, resolve};
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::share;
use headroom_scenario::{self as scenario, Scenario};

/// A memory snapshot, or why a file is not one.
pub type OpenedSnapshot = Result<Snapshot, String>;

/// The page's state, available to every component.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    draft: RwSignal<Draft>,
    history: RwSignal<History>,
    pub units: RwSignal<UnitStyle>,
    /// Parts of a link that this version does not know.
    pub link_notes: RwSignal<Vec<String>>,
    /// An applied proposal, and the estimate before it.
    ghost: RwSignal<Option<(Scenario, Arc<Estimate>)>>,
    /// Requested recorded graphs.
    pub graphs: RwSignal<Graphs>,
    /// Saved plans.
    pub plans: RwSignal<Plans>,
    /// The doctor's input.
    pub pasted: RwSignal<String>,
    /// The opened memory snapshot.
    pub snapshot: RwSignal<Option<Arc<OpenedSnapshot>>>,
    /// The link of the user's own scenario, before a shared link was opened.
    pub previous_link: RwSignal<Option<String>>,
    /// The preset or file that the scenario started from: a setting counts as changed if it differs from that.
    pub preset: RwSignal<Arc<Scenario>>,
    /// The scenario of the latest valid values.
    pub scenario: Memo<Scenario>,
    pub answer: Memo<Answer>,
    /// The debounced answer, for expensive panels.
    pub settled: RwSignal<Answer>,
    pub estimate: Memo<Option<Arc<Estimate>>>,
    /// The estimate is not of the form's current content.
    pub stale: Memo<bool>,
    /// The scenario to compare with.
    pub kept: RwSignal<Option<Scenario>>,
    pub kept_answer: Memo<Answer>,
}

/// The answer for the scenario to compare with.
fn answer_of(kept: Option<&Scenario>, graphs: &Graphs) -> Answer {
    let answer = |kept| answer_with(kept, None, graphs);
    kept.map(answer).unwrap_or_default()
}

/// The latest estimate, and whether it is still current.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub estimate: Option<Arc<Estimate>>,
    /// The prediction behind the estimate, which all panels read.
    pub prediction: Option<Arc<Prediction>>,
    /// The estimated scenario.
    pub scenario: Arc<Scenario>,
    pub problems: Vec<String>,
    /// The form has something that cannot be estimated; the estimate is of the last valid scenario.
    pub stale: bool,
}

impl Session {
    pub fn new(scenario: Scenario) -> Self {
        let draft = RwSignal::new(Draft::new(scenario::Draft::of(&scenario)));
        let scenario = memo(move || draft.with(|draft| draft.scenario().clone()));
        let right = memo(move || draft.with(Draft::is_right));
        let graphs = RwSignal::new(Graphs::default());
        let result = memo_after(move |before: Option<&Answer>| {
            graphs.with(|graphs| scenario.with(|scenario| answer_with(scenario, before, graphs)))
        });
        let answer = memo(move || {
            let mut answer = result.get();
            answer.stale |= !right.get();
            answer
        });
        let estimate = memo(move || answer.with(|answer| answer.estimate.clone()));
        let stale = memo(move || answer.with(|answer| answer.stale));
        let kept = RwSignal::new(None);
        let kept_answer =
            memo(move || graphs.with(|graphs| kept.with(|kept| answer_of(kept.as_ref(), graphs))));
        Self {
            draft,
            history: RwSignal::default(),
            units: RwSignal::default(),
            link_notes: RwSignal::default(),
            ghost: RwSignal::default(),
            graphs,
            plans: RwSignal::new(plan_store::kept()),
            pasted: RwSignal::default(),
            snapshot: RwSignal::default(),
            previous_link: RwSignal::default(),
            preset: RwSignal::default(),
            scenario,
            answer,
            settled: RwSignal::default(),
            estimate,
            stale,
            kept,
            kept_answer,
        }
    }

    /// The session of the page that a component is part of.
    pub fn current() -> Self {
        expect_context()
    }

    /// A field's text.
    pub fn text(self, setting: &'static Setting) -> String {
        self.draft.with(|draft| draft.text(setting))
    }

    /// A field's content.
    pub fn shown(self, setting: &'static Setting) -> Shown {
        self.draft
            .with(|draft| self.preset.with(|preset| draft.shown(setting, preset)))
    }

    pub fn problem(self, setting: &'static Setting) -> Option<String> {
        let owned = |draft: &Draft| draft.problem(setting).map(String::from);
        self.draft.with(owned)
    }

    pub fn enter(self, setting: &'static Setting, text: &str) {
        let (before, scenario) = (self.input(), self.scenario.get_untracked());
        self.draft.update(|draft| draft.enter(setting, text));
        if self.scenario.with_untracked(|now| *now != scenario) {
            let record = |history: &mut History| history.record(&before, Some(setting.path));
            self.history.update(record);
        }
    }

    pub fn leave(self, setting: &'static Setting) {
        self.draft.update(|draft| draft.leave(setting));
        self.end_edit();
    }

    /// Ends a series of changes to one field: later ones are undone separately.
    pub fn end_edit(self) {
        self.history.update_untracked(History::pause);
    }

    /// Replaces the scenario, which can be undone.
    pub fn replace(self, scenario: Scenario) {
        self.replace_draft(self.input().moved_to(&scenario));
    }

    pub fn replace_draft(self, input: scenario::Draft) {
        let (before, draft) = (self.input(), Draft::new(input));
        if self.scenario.with_untracked(|now| now != draft.scenario()) {
            self.history.update(|history| history.record(&before, None));
        }
        self.draft.set(draft);
    }

    fn input(self) -> scenario::Draft {
        self.draft.with_untracked(|draft| draft.input().clone())
    }

    /// Words that name no GPU are about the one that was chosen before.
    pub fn keep_hardware(self, draft: &mut scenario::Draft) {
        const HARDWARE: [&str; 3] = ["hardware.gpu", "hardware.gpus", "hardware.nodes"];
        let before = self.input();
        let settings = HARDWARE.map(settings::find);
        let mut settings = settings.into_iter().flatten();
        if settings.clone().any(|setting| draft.get(setting).is_some()) {
            return;
        }
        settings.by_ref().for_each(|setting| {
            if let Some((value, origin)) = before.get(setting) {
                draft.set_value(setting, value.clone(), origin.clone());
            }
        });
    }

    /// Reads the run with the origins of its values.
    pub fn resolved<T>(self, read: fn(&Resolved) -> T) -> T {
        self.draft.with(|draft| read(draft.resolved()))
    }

    /// Applies a proposed scenario; the previous estimate stays visible behind it until the next change.
    pub fn apply(self, scenario: Scenario) {
        let before = self.estimate.get_untracked();
        self.replace(scenario.clone());
        self.ghost.set(before.map(|estimate| (scenario, estimate)));
    }

    /// The estimate before the applied proposal.
    pub fn ghost(self) -> Option<Arc<Estimate>> {
        let ghost = self.ghost.get()?;
        self.scenario
            .with(|scenario| *scenario == ghost.0)
            .then_some(ghost.1)
    }

    /// Starts from a preset: changes are shown against it.
    pub fn start_from(self, preset: &Preset) {
        self.link_notes.set(Vec::new());
        self.preset.set(Arc::new(preset.scenario()));
        self.replace_draft(preset.draft());
    }

    /// Starts from what was understood of words or a file: changes are shown against it.
    pub fn start_from_draft(self, draft: scenario::Draft) {
        let start = resolve(&draft).scenario;
        self.preset.set(Arc::new(start));
        self.replace_draft(draft);
    }

    /// Reverts every change since the chosen preset.
    pub fn reset(self) {
        self.link_notes.set(Vec::new());
        self.replace((*self.preset.get_untracked()).clone());
    }

    /// Whether nothing differs from the chosen preset.
    pub fn is_preset(self) -> bool {
        self.preset
            .with(|preset| self.scenario.with(|scenario| **preset == *scenario))
    }

    pub fn undo(self) {
        self.walk(History::undo);
    }

    pub fn redo(self) {
        self.walk(History::redo);
    }

    pub fn can_undo(self) -> bool {
        self.history.with(History::can_undo)
    }

    pub fn can_redo(self) -> bool {
        self.history.with(History::can_redo)
    }

    fn walk(self, step: fn(&mut History, &scenario::Draft) -> Option<scenario::Draft>) {
        let now = self.input();
        let other = self.history.try_update(|history| step(history, &now));
        if let Some(other) = other.flatten() {
            self.draft.set(Draft::new(other));
        }
    }

    /// Keeps the current scenario to compare with.
    pub fn keep(self) {
        self.kept.set(Some(self.scenario.get_untracked()));
    }

    /// Swaps the kept and the current scenario.
    pub fn swap(self) {
        if let Some(kept) = self.kept.get_untracked() {
            self.keep();
            self.replace(kept);
        }
    }

    /// The fragment that restores the current state.
    pub fn link(self) -> String {
        let kept = self.kept.get();
        self.scenario.with(|scenario| match &kept {
            Some(kept) => share::write_both(scenario, kept),
            None => share::write(scenario),
        })
    }

    pub fn link_untracked(self) -> String {
        untrack(|| self.link())
    }

    /// Starts from a link's fragment, without history.
    pub fn begin(self, fragment: &str) {
        self.open(fragment);
        self.history.set(History::default());
        self.settled.set(self.answer.get_untracked());
    }

    /// Opens a link's fragment; its unknown parts are listed next to the answer.
    pub fn open(self, fragment: &str) {
        let opened = share::read(fragment);
        let mut notes: Vec<String> = opened.problems.iter().map(text::problem).collect();
        if let Some(data) = opened.other_data {
            notes.push(text::other_data(&data));
        }
        let other = share::read_other(fragment);
        let of_other = other.iter().flat_map(|other| &other.problems);
        let new = of_other.filter(|problem| !opened.problems.contains(problem));
        notes.extend(new.map(|problem| text::of_compared(&text::problem(problem))));
        let draft = known(opened.draft, &mut notes);
        let scenario = resolve(&draft).scenario;
        self.link_notes.set(notes);
        // Whoever opens a link has changed nothing yet.
        self.preset.set(Arc::new(scenario));
        self.kept.set(other.map(|other| other.scenario));
        self.replace_draft(draft);
    }
}

/// Replaces an unknown GPU or model by the default, since nothing can be estimated without them.
fn known(mut draft: scenario::Draft, notes: &mut Vec<String>) -> scenario::Draft {
    for path in ["hardware.gpu", "model.id"] {
        let problems = resolve(&draft).scenario.check();
        let found = problems.iter().find(|problem| problem.field() == path);
        if let (Some(problem), Some(setting)) = (found, settings::find(path)) {
            notes.push(text::problem(problem));
            draft.forget(setting);
        }
    }
    draft
}

/// The answer for a scenario; if there is none, the previous one, marked as stale.
#[cfg(test)]
pub fn answer(scenario: &Scenario, before: Option<&Answer>) -> Answer {
    answer_with(scenario, before, &Graphs::default())
}

/// The same, with the state of a recorded graph that is not loaded.
fn answer_with(scenario: &Scenario, before: Option<&Answer>, graphs: &Graphs) -> Answer {
    let problems: Vec<String> = scenario.check().iter().map(text::problem).collect();
    let refused = |problems| Answer {
        problems,
        stale: true,
        ..before.cloned().unwrap_or_default()
    };
    if !problems.is_empty() {
        return refused(problems);
    }
    let prediction = Prediction::new(scenario.clone());
    match prediction.estimate().cloned() {
        Ok(estimate) => Answer {
            estimate: Some(Arc::new(estimate)),
            prediction: Some(Arc::new(prediction)),
            scenario: Arc::new(scenario.clone()),
            problems,
            stale: false,
        },
        Err(Unsupported::GraphAbsent(id)) => refused(vec![graphs.message(id)]),
        Err(unsupported) => refused(vec![text::unsupported(&unsupported)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::gauge::pieces;
    use crate::fits::{breakdown, timeline};
    use headroom_core::estimate::{At, runs_of};
    use headroom_scenario::presets;

    /// Two questions run the network: the first steps, and the same with shapes noted.
    #[test]
    fn all_panels_share_the_same_runs() {
        let units = UnitStyle::Binary;
        let scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        let open_all = || {
            let answer = answer(&scenario, None);
            let (estimate, prediction) = (answer.estimate.unwrap(), answer.prediction.unwrap());
            let mut filled = 0;
            for (piece, _) in pieces(&estimate) {
                filled +=
                    breakdown::tensors(&prediction, piece, units).map_or(0, |rows| rows.len());
            }
            let tensors = prediction.tensors(At::Peak).unwrap();
            filled += breakdown::Node::of(&tensors).children.len();
            filled += prediction.timeline_by_category().unwrap().len();
            for place in breakdown::places(&prediction) {
                filled += breakdown::inside(&prediction, &place, units).unwrap().len();
            }
            for at in 0..estimate.timeline.len() {
                filled += timeline::alive(&prediction, at, units).unwrap().len();
            }
            filled += timeline::rows(&estimate, units).len();
            filled += prediction.warnings().len();
            filled += prediction.smallest_card().unwrap().into_iter().count();
            filled
        };
        let (filled, runs) = runs_of(open_all);
        assert!(filled > 1000, "{filled}");
        assert_eq!(runs, 2);
    }

    #[test]
    fn a_link_with_unknown_names_gets_the_defaults() {
        let check = |change: fn(&mut Scenario), expected: &[&str]| {
            let mut scenario = Scenario::default();
            scenario.data.micro_batch = 3;
            change(&mut scenario);
            let mut notes = Vec::new();
            let known = known(scenario::Draft::of(&scenario), &mut notes);
            let known = resolve(&known).scenario;
            assert_eq!((known.check(), known.data.micro_batch), (vec![], 3));
            assert_eq!(notes, expected);
        };
        check(|_| (), &[]);
        check(
            |scenario| scenario.hardware.gpu = "nonsense".into(),
            &["No GPU is called “nonsense”."],
        );
        check(
            |scenario| {
                scenario.hardware.gpu = "nonsense".into();
                scenario.model.id = "lama-3.1-8b".into();
            },
            &[
                "No GPU is called “nonsense”.",
                "No model is called “lama-3.1-8b”. Did you mean llama-3.1-8b?",
            ],
        );
    }
}
