//! From a `Draft` to a complete `Scenario`, with the origin of each value.
//!
//! A value comes from the strongest source that has one: the format's defaults, the catalogue, the method, the training
//! software, and then what the draft says (a preset, a link, a file, a person). Each source but the draft has a file here.

mod assumptions;
mod catalogue;
mod format;
mod method;
mod origin;
mod rows;
mod trainer;
mod usual;

use std::collections::BTreeMap;

pub use assumptions::{Assumption, assumptions, in_words};
pub use method::{MethodDefault, method_default};
pub use origin::{Library, Origin};
pub(crate) use rows::follows_row;
pub use trainer::{StackDefault, stack_defaults};

use super::settings::{self, SettingId, Value};
use super::{Draft, Problem, Scenario};

/// A complete scenario, and where its values come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    pub scenario: Scenario,
    /// For each setting that has an effect.
    pub origins: BTreeMap<SettingId, Origin>,
    /// What the draft says and cannot be used.
    pub problems: Vec<Problem>,
}

type Values = BTreeMap<SettingId, (Value, Origin)>;

pub fn resolve(draft: &Draft) -> Resolved {
    // Which defaults hold depends on the software, the model and the method that the draft names.
    let stack_and_model = fill(draft, &format::values(draft.format())).scenario;
    let edited = rows::edited(draft, &stack_and_model);
    let draft = edited.as_ref().unwrap_or(draft);
    let usual = draft.has_usual_run().then(|| said_of_adapters(draft));
    let mut values = defaults(draft.format(), usual, &stack_and_model);
    rows::apply(draft, &stack_and_model, &mut values);
    fill(draft, &values)
}

/// Whether the draft wants adapters; `None` if it leaves that open.
fn said_of_adapters(draft: &Draft) -> usual::Said {
    let setting = settings::find("training.lora")?;
    let mut children = settings::all()
        .iter()
        .filter(|child| child.parent == Some(setting.path));
    match draft.get(setting) {
        Some((value, _)) => Some(*value == Value::Switch(true)),
        None => children.any(|child| draft.mentions(child)).then_some(true),
    }
}

/// What has to be said about adapters to get this scenario: nothing where the usual run agrees.
pub(super) fn needed_of_adapters(scenario: &Scenario) -> usual::Said {
    let has = scenario.training.lora.is_some();
    (usual::has_adapters(scenario, None) != has).then_some(has)
}

/// The value of every setting in such a scenario where the draft has none; with the usual run of its model if that is asked
/// for.
pub(super) fn defaults(
    format: Option<u32>,
    usual: Option<usual::Said>,
    scenario: &Scenario,
) -> Values {
    let mut values = format::values(format);
    if format.is_none() {
        catalogue::apply(scenario, &mut values);
        let adapted = usual.is_some_and(|said| usual::has_adapters(scenario, said));
        method::apply(scenario, adapted, &mut values);
        if let Some(said) = usual {
            usual::apply(scenario, said, &mut values);
        }
    }
    trainer::apply(scenario, &mut values);
    values
}

fn fill(draft: &Draft, defaults: &Values) -> Resolved {
    let mut resolved = Resolved::default();
    for setting in settings::all() {
        let own = draft.get(setting);
        let applies = setting.applies(&resolved.scenario);
        let closed = match setting.parent {
            None if !applies => settings::find(setting.decided_by()),
            Some("training.prompt_tokens") if !applies => setting.parent.and_then(settings::find),
            _ => closed_parent(setting, draft),
        };
        if let Some(with) = closed {
            resolved
                .problems
                .extend(conflict(setting, with, draft, &resolved.scenario));
            continue;
        }
        // A child's default does not turn its parent on; a value that was given does.
        let opener = setting
            .parent
            .and_then(|_| siblings(setting).find(|sibling| draft.mentions(sibling)));
        if !applies && opener.is_none() {
            continue;
        }
        resolved.problems.extend(draft.refused(setting).cloned());
        let default = defaults.get(setting);
        let Some((value, origin)) = own.or(default) else {
            continue;
        };
        setting.write(&mut resolved.scenario, value.clone());
        // A link spells out the trainer's defaults, so that its meaning does not change with the catalogue.
        let spelt_out = default.filter(|(known, source)| {
            *origin == Origin::Link && known == value && matches!(source, Origin::Trainer { .. })
        });
        let origin = spelt_out.map_or(origin, |(_, source)| source);
        resolved.origins.insert(setting, origin.clone());
        let opened = setting
            .parent
            .filter(|_| !applies && setting.applies(&resolved.scenario));
        if let Some(parent) = opened.and_then(settings::find) {
            let opener = opener.and_then(|opener| draft.get(opener));
            let origin = opener.map_or(origin, |(_, origin)| origin);
            resolved.origins.insert(parent, origin.clone());
        }
    }
    resolved
}

/// The settings with the same parent, this one among them.
fn siblings(setting: SettingId) -> impl Iterator<Item = SettingId> {
    settings::all()
        .iter()
        .filter(move |other| other.parent == setting.parent)
}

/// The setting's parent, where it was turned off and no stronger source gave one of its children a value.
fn closed_parent(setting: SettingId, draft: &Draft) -> Option<SettingId> {
    let parent = settings::find(setting.parent?)?;
    let (value, origin) = draft.get(parent)?;
    let stronger = |child: SettingId| {
        let value = draft.get(child);
        value.is_some_and(|(_, own)| own.rank() > origin.rank())
    };
    (*value == Value::Switch(false) && !siblings(setting).any(stronger)).then_some(parent)
}

/// The problem of a value without effect, unless it is from a weaker source than what takes the effect away.
fn conflict(
    setting: SettingId,
    with: SettingId,
    draft: &Draft,
    scenario: &Scenario,
) -> Option<Problem> {
    if let Some(problem) = draft.refused(setting) {
        return Some(problem.clone());
    }
    let (given, origin) = draft.get(setting)?;
    let overruled = draft
        .get(with)
        .is_some_and(|(_, other)| other.rank() > origin.rank());
    (!overruled).then(|| Problem::Conflict {
        id: setting,
        given: given.to_string(),
        with,
        value: with.get(scenario),
    })
}

#[cfg(test)]
mod tests;
