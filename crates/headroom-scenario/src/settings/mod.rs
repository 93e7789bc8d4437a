//! The settings themselves, a file for each section, in the order of the form, and the ways to look one up.

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use self::data::{frames, resolution, takes_length};
pub use self::typed::{aliases, typed};
use super::problem::{NameKind, nearest};
pub use super::setting::{Setting, SettingId, Value, ValueType};
pub use super::values::{LARGEST_SIZE, LONGEST_LIST, LONGEST_NAME};
use super::{Problem, Scenario};
use headroom_base::order::sorted;

/// All settings, in the order in which people meet them.
pub fn all() -> &'static [Setting] {
    &ALL
}

/// The setting at a path, such as `data.micro_batch`.
pub fn find(path: &str) -> Option<&'static Setting> {
    static BY_PATH: OnceLock<Index> = OnceLock::new();
    indexed(&BY_PATH, |setting| setting.path).get(path).copied()
}

/// The setting with a link key, such as `mb`.
pub fn by_key(key: &str) -> Option<&'static Setting> {
    static BY_KEY: OnceLock<Index> = OnceLock::new();
    indexed(&BY_KEY, |setting| setting.key).get(key).copied()
}

/// Settings by a name: a link is read by hundreds of look-ups.
type Index = BTreeMap<&'static str, &'static Setting>;

fn indexed(index: &'static OnceLock<Index>, name: fn(&Setting) -> &'static str) -> &'static Index {
    index.get_or_init(|| {
        all()
            .iter()
            .map(|setting| (name(setting), setting))
            .collect()
    })
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
    Problem::unknown_name(NameKind::Setting, name, value, [])
}

/// The paths that a name which no setting has most likely means.
pub(super) fn near(name: &str) -> Vec<&'static str> {
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
    near.map_or_else(|| holding(name), |near| vec![near])
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
    /// Whether other settings' defaults depend on this one.
    pub(super) fn brings_defaults(&self) -> bool {
        self.section() == "stack"
            || matches!(self.path, "model.id" | "hardware.gpu")
            || self.path.starts_with("training.lora")
    }

    /// The setting whose value decides whether this one, which has no parent, means anything.
    pub(crate) fn decided_by(&self) -> &'static str {
        let of_model = self.path.starts_with("data.") || self.path == "training.block_swap";
        if of_model {
            "model.id"
        } else {
            "task.objective"
        }
    }

    /// Whether the setting means anything in this scenario (adapters' rank does not without adapters).
    pub fn applies(&self, scenario: &Scenario) -> bool {
        let on = |parent: &Setting| {
            !matches!(
                parent.value(scenario),
                Value::Switch(false) | Value::Whole(0)
            )
        };
        let in_task = self.path.strip_prefix("task.");
        let in_data = self.path.strip_prefix("data.");
        let swaps = self.path != "training.block_swap" || data::swaps_blocks(scenario);
        swaps
            && in_task.is_none_or(|field| task::applies(field, scenario))
            && in_data.is_none_or(|field| data::applies(field, scenario))
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
/// The same where the text `0` stands for none.
macro_rules! unless_zero {
    ($($part:ident).+) => {
        crate::setting::Access::Whole(
            |s| s.$($part).+.map_or(0, |value| u64::from(value.get())),
            |s, new| s.$($part).+ = new.try_into().ok().and_then(std::num::NonZero::new),
        )
    };
}
/// A version, where the text `0.0` stands for none.
macro_rules! unless_zeros {
    ($($part:ident).+) => {
        crate::setting::Access::Version(
            |s| s.$($part).+.unwrap_or_default(),
            |s, new| s.$($part).+ = Some(new).filter(|version| *version != (0, 0)),
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
            |s, id| s.$($part).+ = $type::from_id(id).unwrap_or_default(),
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
/// Accessors for a field of the adapters; writing one turns adapters on.
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
mod pictures;
mod runtime;
mod stack;
mod task;
mod training;
mod typed;

const TABLES: &[&[Setting]] = &[
    hardware::SETTINGS,
    model::SETTINGS,
    task::SETTINGS,
    data::SETTINGS,
    pictures::SETTINGS,
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
