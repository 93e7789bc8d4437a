//! What to change in a run so that a program can express it.

use super::Target;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Estimate, quick_peak};
use headroom_scenario::settings::{self, Setting, ValueType};
use headroom_scenario::{Problem, Scenario};

/// A change of one field that a program needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    pub label: &'static str,
    /// The new value, as people read it.
    pub value: String,
    pub scenario: Scenario,
}

/// A run that a program can start, and what that changed in the run that was given, in words.
#[derive(Clone, Debug)]
pub struct Startable {
    pub scenario: Scenario,
    pub changes: Vec<String>,
}

impl Startable {
    /// The changes in a line, for the program of this title; `None` where there are none.
    pub fn line(&self, title: &str) -> Option<String> {
        let changes = self.changes.join("; ");
        (!changes.is_empty()).then(|| format!("for {title}: {changes}"))
    }
}

impl From<Scenario> for Startable {
    fn from(scenario: Scenario) -> Self {
        let changes = Vec::new();
        Self { scenario, changes }
    }
}

impl Target {
    /// What it cannot express of a run, each with the change that fixes it and moves memory least; `None` if no value of that
    /// field does.
    pub fn remedies(&self, scenario: &Scenario) -> Vec<(Problem, Option<Remedy>)> {
        let with_remedy = |problem: Problem| {
            let remedy = self.remedy(scenario, &problem);
            (problem, remedy)
        };
        self.problems(scenario)
            .into_iter()
            .map(with_remedy)
            .collect()
    }

    /// The run as it can start it; `None` if changes of single fields do not lead there.
    pub fn startable(&self, scenario: &Scenario) -> Option<Startable> {
        let mut found = Startable {
            scenario: scenario.clone(),
            changes: Vec::new(),
        };
        // Each round fixes one field or ends.
        for _ in 0..settings::all().len() {
            let now = &found.scenario;
            let problems = self.problems(now);
            if problems.is_empty() {
                return Some(found);
            }
            let mut remedies = problems.iter().map(|problem| self.remedy(now, problem));
            let Remedy {
                label,
                value,
                scenario,
            } = remedies.find_map(|remedy| remedy)?;
            found.changes.push(format!("{label}: {value}"));
            found.scenario = scenario;
        }
        None
    }

    /// What it cannot express of a run.
    pub fn problems(&self, scenario: &Scenario) -> Vec<Problem> {
        (self.write)(scenario, &Estimate::default())
            .err()
            .unwrap_or_default()
    }

    /// The change of that field that fixes it and moves memory least.
    pub fn remedy(&self, scenario: &Scenario, problem: &Problem) -> Option<Remedy> {
        let before = self.problems(scenario).len();
        let setting = settings::find(problem.field())?;
        let peak = quick_peak(scenario).ok();
        let mut best: Option<(Bytes, Remedy)> = None;
        for value in candidates(setting)
            .into_iter()
            .chain(named(setting, problem))
        {
            let mut changed = scenario.clone();
            if setting.set(&mut changed, &value).is_err() || changed == *scenario {
                continue;
            }
            let refused = changed.check().len() > scenario.check().len();
            if refused || self.problems(&changed).len() >= before {
                continue;
            }
            let far = match (peak, quick_peak(&changed).ok()) {
                (Some(was), Some(is)) => was.max(is) - was.min(is),
                _ => Bytes::ZERO,
            };
            if best.as_ref().is_none_or(|(nearest, _)| far < *nearest) {
                let remedy = Remedy {
                    label: setting.label,
                    value: shown(setting, &changed),
                    scenario: changed,
                };
                best = Some((far, remedy));
            }
        }
        best.map(|(_, remedy)| remedy)
    }
}

/// Values that may fix a field: its default first.
fn candidates(setting: &Setting) -> Vec<String> {
    let mut values = vec![setting.default()];
    match setting.value_type {
        ValueType::Choice(choices) => values.extend(choices.iter().map(|choice| choice.id.into())),
        ValueType::Switch => values.extend(["on", "off"].map(String::from)),
        ValueType::Whole { .. } => values.extend(["0", "1"].map(String::from)),
        // Another model or GPU is another run.
        ValueType::Model | ValueType::Gpu | ValueType::Network => return Vec::new(),
        _ => {}
    }
    values
}

/// The value that a problem itself names before it says for whom: a list of names, or a number.
fn named(setting: &Setting, problem: &Problem) -> Option<String> {
    let Problem::Unexpected { expected, .. } = problem else {
        return None;
    };
    let ends = |c: char| match setting.value_type {
        ValueType::Words => c == ' ',
        _ => !c.is_ascii_digit(),
    };
    let value = expected
        .split(ends)
        .next()
        .filter(|value| !value.is_empty())?;
    let is_named = matches!(
        setting.value_type,
        ValueType::Words | ValueType::Whole { .. }
    );
    is_named.then(|| value.into())
}

/// A field's value as people read it.
pub fn shown(setting: &Setting, scenario: &Scenario) -> String {
    let value = setting.get(scenario);
    let label = match setting.value_type {
        ValueType::Choice(choices) => choices
            .iter()
            .find(|choice| choice.id == value)
            .map(|choice| choice.label),
        _ => None,
    };
    match label {
        Some(label) => label.into(),
        None if value.is_empty() => "none".into(),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::target;
    use super::*;
    use headroom_scenario::presets;

    #[track_caller]
    fn check(id: &str, changes: &[(&str, &str)], expected: &[(&str, Option<&str>)]) {
        let mut scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let target = target(id).unwrap();
        let remedies = target.remedies(&scenario);
        let found: Vec<_> = remedies
            .iter()
            .map(|(problem, remedy)| {
                (
                    problem.field(),
                    remedy.as_ref().map(|remedy| &*remedy.value),
                )
            })
            .collect();
        assert_eq!(found, expected, "{id}");
        let mended = target.startable(&scenario).map(|it| it.scenario);
        assert_eq!(
            mended.is_some(),
            expected.iter().all(|(_, value)| value.is_some())
        );
        if let Some(mended) = mended {
            assert!((target.write)(&mended, &Estimate::default()).is_ok());
        }
    }

    #[test]
    fn what_a_program_cannot_express_has_a_change_that_mends_it() {
        check("trl", &[], &[]);
        check(
            "trl",
            &[("ckpt", "keep-half")],
            &[("training.checkpointing", Some("full: every layer"))],
        );
        check(
            "trl",
            &[("loss", "chunked-loss"), ("tp", "2"), ("gpus", "2")],
            &[
                ("parallel.tp", Some("1")),
                (
                    "training.loss",
                    Some("chunked logits and cross-entropy, checkpointed"),
                ),
            ],
        );
        check(
            "trl",
            &[("model", "vit-b16"), ("seq", "1")],
            &[("model.id", None)],
        );
    }
}
