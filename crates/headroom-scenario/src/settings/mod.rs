//! The settings themselves, a file for each section, in the order of the form, and the ways to look one up.

use super::problem::{nearest, one_of};
pub use super::setting::{Setting, Value, ValueType};
pub use super::values::{LARGEST_SIZE, LONGEST_LIST, LONGEST_NAME};
use super::{Problem, Scenario};
use headroom_base::order::sorted;

/// All settings, in the order in which people meet them.
pub fn all() -> &'static [Setting] {
    &ALL
}

/// The setting at a path, such as `data.micro_batch`.
pub fn find(path: &str) -> Option<&'static Setting> {
    all().iter().find(|setting| setting.path == path)
}

/// The setting with a link key, such as `mb`.
pub fn by_key(key: &str) -> Option<&'static Setting> {
    all().iter().find(|setting| setting.key == key)
}

/// The setting with this path or this link key.
pub fn named(name: &str) -> Option<&'static Setting> {
    find(name).or_else(|| by_key(name))
}

/// Sets one field by its path or its link key: what `--set data.micro_batch=4` and `--set mb=4` do.
pub fn set(scenario: &mut Scenario, name: &str, text: &str) -> Result<(), Problem> {
    match named(name) {
        Some(setting) => setting.set(scenario, text),
        None => Err(unknown(name, text)),
    }
}

/// The problem of a name that no setting has.
pub fn unknown(name: &str, value: &str) -> Problem {
    let names = all().iter().flat_map(|setting| [setting.path, setting.key]);
    let sections = SECTIONS.iter().map(|(id, _)| *id);
    // `data.seq` means the field whose link key is `seq`, and `strategy` the one whose path ends so.
    let by_key = name.rsplit_once('.').and_then(|(_, key)| by_key(key));
    let ends = || all().iter().map(Setting::name);
    let by_end = |end: &str| all().iter().find(|setting| setting.name() == end);
    let near = by_key.or_else(|| by_end(name)).map(|setting| setting.path);
    let near = near
        .or_else(|| nearest(name, names.chain(sections)))
        .or_else(|| Some(by_end(nearest(name, ends())?)?.path));
    let expected = match near.map(String::from).or_else(|| one_of(&holding(name))) {
        Some(near) => format!("a known field; did you mean {near}?"),
        None => "a known field; `headroom schema` lists them".into(),
    };
    Problem::new(name, value, expected)
}

/// The fields whose names hold a word, such as `data.micro_batch` for `batch`, the shortest first.
fn holding(word: &str) -> Vec<&'static str> {
    const MOST: usize = 3;
    let named = |setting: &&Setting| {
        let mut words = setting.name().split('_');
        words.any(|own| own == word)
    };
    let fields = all().iter().filter(named).map(|setting| setting.path);
    let fields = sorted(fields, |one, other| one.len().cmp(&other.len()));
    fields.into_iter().take(MOST).collect()
}

/// Sections of the form, of files and of the documentation, in order: the first part of a path and its title.
pub const SECTIONS: &[(&str, &str)] = &[
    ("hardware", "Hardware"),
    ("model", "Model"),
    ("task", "Task"),
    ("data", "Data"),
    ("training", "Training"),
    ("parallel", "Parallel layout"),
    ("stack", "Software"),
    ("runtime", "Runtime"),
];

impl Setting {
    /// Whether the setting means anything in this scenario (adapters' rank does not without adapters).
    pub fn applies(&self, scenario: &Scenario) -> bool {
        let on = |parent: &Setting| parent.value(scenario) == Value::Switch(true);
        let in_task = self.path.strip_prefix("task.");
        in_task.is_none_or(|field| task::applies(field, scenario))
            && self.parent.and_then(find).is_none_or(on)
    }
}

/// Accessors for a field given by its path in the struct.
macro_rules! whole {
    ($($part:ident).+) => {
        crate::setting::Access::Whole(
            |s| u64::from(s.$($part).+),
            |s, new| s.$($part).+ = new.try_into().unwrap_or_default(),
        )
    };
}
macro_rules! number {
    ($($part:ident).+) => {
        crate::setting::Access::Number(|s| s.$($part).+, |s, new| s.$($part).+ = new)
    };
}
macro_rules! switch {
    ($($part:ident).+) => {
        crate::setting::Access::Switch(|s| s.$($part).+, |s, new| s.$($part).+ = new)
    };
}
macro_rules! choice {
    ($type:ident, $($part:ident).+) => {
        crate::setting::Access::Choice(
            |s| s.$($part).+.id(),
            |s, id| $type::from_id(id).map(|choice| s.$($part).+ = choice).is_some(),
        )
    };
}
macro_rules! text {
    ($($part:ident).+) => {
        crate::setting::Access::Text(|s| s.$($part).+.clone(), |s, new| s.$($part).+ = new)
    };
}
macro_rules! words {
    ($($part:ident).+) => {
        crate::setting::Access::Words(|s| s.$($part).+.clone(), |s, new| s.$($part).+ = new)
    };
}
/// Accessors for a field of the adapters, which exist only where asked for: writing one asks for them.
macro_rules! lora {
    ($access:ident, $field:ident) => {
        crate::setting::Access::$access(
            |s| s.training.lora.clone().unwrap_or_default().$field,
            |s, new| adapters(s).$field = new,
        )
    };
}

mod data;
mod hardware;
mod model;
mod parallel;
mod runtime;
mod stack;
mod task;
mod training;

const TABLES: &[&[Setting]] = &[
    hardware::SETTINGS,
    model::SETTINGS,
    task::SETTINGS,
    data::SETTINGS,
    training::SETTINGS,
    parallel::SETTINGS,
    stack::SETTINGS,
    runtime::SETTINGS,
];

static ALL: [Setting; count(TABLES)] = joined(TABLES);

const fn count(sections: &[&[Setting]]) -> usize {
    let (mut all, mut at) = (0, 0);
    while at < sections.len() {
        all += sections[at].len();
        at += 1;
    }
    all
}

const fn joined<const ALL: usize>(sections: &[&[Setting]]) -> [Setting; ALL] {
    let mut all = [sections[0][0]; ALL];
    let (mut section, mut filled) = (0, 0);
    while section < sections.len() {
        let mut at = 0;
        while at < sections[section].len() {
            all[filled] = sections[section][at];
            filled += 1;
            at += 1;
        }
        section += 1;
    }
    all
}

fn adapters(scenario: &mut Scenario) -> &mut super::Lora {
    scenario.training.lora.get_or_insert_default()
}

#[cfg(test)]
mod tests;
