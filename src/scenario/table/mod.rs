//! The settings themselves, a file for each section, in the order of the form.

use super::Scenario;
use super::settings::Setting;

/// Accessors for a field given by its path in the struct.
macro_rules! whole {
    ($($part:ident).+) => {
        crate::scenario::settings::Access::Whole(
            |s| u64::from(s.$($part).+),
            |s, it| s.$($part).+ = it.try_into().unwrap_or_default(),
        )
    };
}
macro_rules! number {
    ($($part:ident).+) => {
        crate::scenario::settings::Access::Number(|s| s.$($part).+, |s, it| s.$($part).+ = it)
    };
}
macro_rules! switch {
    ($($part:ident).+) => {
        crate::scenario::settings::Access::Switch(|s| s.$($part).+, |s, it| s.$($part).+ = it)
    };
}
macro_rules! choice {
    ($type:ident, $($part:ident).+) => {
        crate::scenario::settings::Access::Choice(
            |s| s.$($part).+.id(),
            |s, id| $type::from_id(id).map(|it| s.$($part).+ = it).is_some(),
        )
    };
}
macro_rules! text {
    ($($part:ident).+) => {
        crate::scenario::settings::Access::Text(|s| s.$($part).+.clone(), |s, it| s.$($part).+ = it)
    };
}
macro_rules! words {
    ($($part:ident).+) => {
        crate::scenario::settings::Access::Words(|s| s.$($part).+.clone(), |s, it| s.$($part).+ = it)
    };
}
/// Accessors for a field of the adapters, which exist only where asked for: writing one asks for them.
macro_rules! lora {
    ($access:ident, $field:ident) => {
        crate::scenario::settings::Access::$access(
            |s| s.training.lora.clone().unwrap_or_default().$field,
            |s, it| adapters(s).$field = it,
        )
    };
}

mod data;
mod hardware;
mod model;
mod parallel;
mod runtime;
mod stack;
mod training;

const SECTIONS: &[&[Setting]] = &[
    hardware::SETTINGS,
    model::SETTINGS,
    data::SETTINGS,
    training::SETTINGS,
    parallel::SETTINGS,
    stack::SETTINGS,
    runtime::SETTINGS,
];

pub(super) static SETTINGS: [Setting; count(SECTIONS)] = joined(SECTIONS);

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
