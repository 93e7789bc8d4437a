//! What the form holds: a scenario that is right, and texts that are not yet.

use headroom_base::order::Map;
use headroom_scenario::settings::Setting;
use headroom_scenario::{Scenario, stack};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// Always made of accepted values: a text that is refused changes nothing here.
    pub scenario: Scenario,
    /// Fields being typed in, as they were typed: `0.` must not become `0` under the cursor.
    typed: Map<&'static str, Typed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Typed {
    text: String,
    /// What would have been accepted.
    problem: Option<String>,
}

/// What a field shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub text: String,
    pub problem: Option<String>,
    pub applies: bool,
    /// What the chosen preset has here, where this differs from it.
    pub preset: Option<String>,
}

impl Draft {
    /// What a field shows; `preset` is the scenario that this one began as.
    pub fn shown(&self, setting: &Setting, preset: &Scenario) -> Shown {
        let value = setting.get(&self.scenario);
        let before = setting.get(preset);
        let typed = self.typed.get(setting.path);
        Shown {
            applies: setting.applies(&self.scenario),
            preset: (before != value).then_some(before),
            problem: typed.and_then(|typed| typed.problem.clone()),
            text: typed.map_or(value, |typed| typed.text.clone()),
        }
    }

    pub fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            typed: Map::new(),
        }
    }

    /// What the field shows.
    pub fn text(&self, setting: &Setting) -> String {
        match self.typed.get(setting.path) {
            Some(typed) => typed.text.clone(),
            None => setting.get(&self.scenario),
        }
    }

    /// What is wrong with the field, if anything.
    pub fn problem(&self, setting: &Setting) -> Option<&str> {
        self.typed.get(setting.path)?.problem.as_deref()
    }

    /// Takes a keystroke: the text stays as typed, and the scenario follows where the text is accepted.
    pub fn enter(&mut self, setting: &Setting, text: &str) {
        let refused = stack::choose(setting, &mut self.scenario, text).err();
        let problem = refused.map(|problem| format!("Expected {}.", problem.expected));
        let text = text.to_string();
        self.typed.insert(setting.path, Typed { text, problem });
    }

    /// Takes the end of typing: an accepted text gives way to the value it meant, a refused one stays.
    pub fn leave(&mut self, setting: &Setting) {
        if self.problem(setting).is_none() {
            self.typed.remove(setting.path);
        }
    }

    /// Whether every field is accepted.
    pub fn is_right(&self) -> bool {
        self.typed.values().all(|typed| typed.problem.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings::find;

    #[test]
    fn a_refused_text_stays_and_changes_nothing() {
        let batch = find("data.micro_batch").unwrap();
        let mut draft = Draft::default();
        draft.enter(batch, "16");
        assert_eq!(draft.scenario.data.micro_batch, 16);
        draft.enter(batch, "1e");
        draft.leave(batch);
        assert_eq!(draft.scenario.data.micro_batch, 16);
        assert_eq!(draft.text(batch), "1e");
        assert!(!draft.is_right());
        let problem = draft.problem(batch).unwrap();
        assert_eq!(problem, "Expected a whole number from 1 to 1000000.");
    }

    #[test]
    fn an_accepted_text_is_kept_as_typed_until_the_field_is_left() {
        let batch = find("data.micro_batch").unwrap();
        let mut draft = Draft::default();
        draft.enter(batch, "1_000");
        assert_eq!(draft.text(batch), "1_000");
        assert!(draft.is_right());
        draft.leave(batch);
        assert_eq!(draft.text(batch), "1000");
    }

    #[test]
    fn what_differs_from_the_preset_says_what_that_has() {
        let batch = find("data.micro_batch").unwrap();
        let preset = Scenario::default();
        let mut draft = Draft::new(preset.clone());
        assert_eq!(draft.shown(batch, &preset).preset, None);
        draft.enter(batch, "16");
        assert_eq!(draft.shown(batch, &preset).preset.as_deref(), Some("8"));
    }
}
