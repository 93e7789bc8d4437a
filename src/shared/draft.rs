//! The form's state: the draft of a scenario, and texts that are not valid values yet.

use crate::text;
use headroom_io::import;
use headroom_scenario::resolve::{Resolved, resolve};
use headroom_scenario::settings::Setting;
use headroom_scenario::{self as scenario, Scenario};
use std::collections::BTreeMap;

const MODEL: &str = "model.id";

/// The settings that decide whether there are adapters, and on which layers.
const DECIDE_ADAPTERS: &[&str] = &[
    MODEL,
    "model.dims",
    "hardware.gpus",
    "training.lora",
    "training.lora.method",
    "training.quantization",
    "stack.trainer",
];

#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Made of accepted values: a text that is refused changes nothing here.
    input: scenario::Draft,
    resolved: Resolved,
    /// Fields being typed in, as they were typed: `0.` must not become `0` under the cursor.
    typed: BTreeMap<&'static str, Typed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Typed {
    text: String,
    /// The expected value.
    problem: Option<String>,
}

/// The content of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub text: String,
    pub problem: Option<String>,
    pub applies: bool,
    /// The preset's value, if the current one differs.
    pub preset: Option<String>,
    /// What set the value, if that was not the person.
    pub source: Option<String>,
}

impl Draft {
    /// The content of a field; `preset` is the scenario that this one started from.
    pub fn shown(&self, setting: &'static Setting, preset: &Scenario) -> Shown {
        let value = setting.get(self.scenario());
        let before = setting.get(preset);
        let typed = self.typed.get(setting.path);
        Shown {
            applies: text::applies(setting, self.scenario()),
            preset: (before != value).then_some(before),
            source: self.source(setting),
            problem: typed.and_then(|typed| typed.problem.clone()),
            text: typed.map_or(value, |typed| typed.text.clone()),
        }
    }

    fn source(&self, setting: &'static Setting) -> Option<String> {
        let origin = self.resolved.origins.get(setting)?;
        text::source(origin)
    }

    pub fn new(input: scenario::Draft) -> Self {
        Self {
            resolved: resolve(&input),
            input,
            typed: BTreeMap::new(),
        }
    }

    pub fn scenario(&self) -> &Scenario {
        &self.resolved.scenario
    }

    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    pub fn input(&self) -> &scenario::Draft {
        &self.input
    }

    /// What the field shows.
    pub fn text(&self, setting: &Setting) -> String {
        match self.typed.get(setting.path) {
            Some(typed) => typed.text.clone(),
            None => setting.get(self.scenario()),
        }
    }

    /// The field's error, if any.
    pub fn problem(&self, setting: &Setting) -> Option<&str> {
        self.typed.get(setting.path)?.problem.as_deref()
    }

    /// Takes a keystroke: the text stays as typed, and the scenario follows where the text is accepted.
    pub fn enter(&mut self, setting: &'static Setting, text: &str) {
        if setting.path == MODEL {
            // Another model is another run: what nobody said follows it.
            self.input.bring_usual_run();
        }
        let problem = match self.input.change(setting, text) {
            Ok(()) => {
                if DECIDE_ADAPTERS.contains(&setting.path) {
                    import::adapt_every_layer(&mut self.input);
                }
                self.resolved = resolve(&self.input);
                None
            }
            Err(problem) => Some(text::expected(&problem)),
        };
        let text = text.to_string();
        self.typed.insert(setting.path, Typed { text, problem });
    }

    /// Handles the end of typing: a valid text is replaced by its normalized value, an invalid one stays.
    pub fn leave(&mut self, setting: &Setting) {
        if self.problem(setting).is_none() {
            self.typed.remove(setting.path);
        }
    }

    /// Whether every field is valid.
    pub fn is_right(&self) -> bool {
        self.typed.values().all(|typed| typed.problem.is_none())
    }
}

impl Default for Draft {
    fn default() -> Self {
        Self::new(scenario::Draft::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings::find;

    #[test]
    fn an_invalid_text_stays_and_changes_nothing() {
        let batch = find("data.micro_batch").unwrap();
        let mut draft = Draft::default();
        draft.enter(batch, "16");
        assert_eq!(draft.scenario().data.micro_batch, 16);
        draft.enter(batch, "1e");
        draft.leave(batch);
        assert_eq!(draft.scenario().data.micro_batch, 16);
        assert_eq!(draft.text(batch), "1e");
        assert!(!draft.is_right());
        let problem = draft.problem(batch).unwrap();
        assert_eq!(problem, "Expected a whole number from 1 to 1000000.");
    }

    #[test]
    fn a_valid_text_stays_as_typed_until_blur() {
        let batch = find("data.micro_batch").unwrap();
        let mut draft = Draft::default();
        draft.enter(batch, "1_000");
        assert_eq!(draft.text(batch), "1_000");
        assert!(draft.is_right());
        draft.leave(batch);
        assert_eq!(draft.text(batch), "1000");
    }

    #[test]
    fn differences_show_the_presets_value() {
        let batch = find("data.micro_batch").unwrap();
        let preset = Scenario::default();
        let mut draft = Draft::new(scenario::Draft::default());
        assert_eq!(draft.shown(batch, &preset).preset, None);
        draft.enter(batch, "16");
        assert_eq!(draft.shown(batch, &preset).preset.as_deref(), Some("8"));
    }
}
