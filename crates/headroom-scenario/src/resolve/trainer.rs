//! Defaults of the scenario's software stack, and which of them are in effect.

use super::{Library, Origin, Values};
use crate::settings::{self, SettingId, Value};
use crate::{Objective, Scenario, Stack, Trainer};
use headroom_catalog::{self as catalog, Fact};

/// A default of the trainer or of a library below it.
#[derive(Clone, Debug)]
pub struct StackDefault {
    pub setting: SettingId,
    pub value: Value,
    pub library: Library,
    /// Where it was read, how sure it is, and a note.
    pub fact: &'static Fact,
    /// Whether the scenario has this value.
    pub in_effect: bool,
}

pub(super) fn apply(scenario: &Scenario, values: &mut Values) {
    // A task after pre-training has its own loss, whatever its trainer takes for others.
    let own_loss = scenario.training.task.objective != Objective::Pretraining;
    let takes = |setting: SettingId| !(own_loss && setting.path == "training.loss");
    for (setting, value, library, fact) in all(&scenario.stack).filter(|row| takes(row.0)) {
        values.insert(setting, (value, Origin::Trainer { library, fact }));
    }
}

/// The defaults of the scenario's software that have an effect in it, in the order of the settings.
pub fn stack_defaults(scenario: &Scenario) -> Vec<StackDefault> {
    all(&scenario.stack)
        .filter(|(setting, ..)| setting.applies(scenario))
        .map(|(setting, value, library, fact)| StackDefault {
            setting,
            in_effect: setting.value(scenario) == value,
            value,
            library,
            fact,
        })
        .collect()
}

/// None for a plain PyTorch loop, which does what it was written to do.
fn all(stack: &Stack) -> impl Iterator<Item = (SettingId, Value, Library, &'static Fact)> {
    let libraries = match stack.trainer {
        Trainer::Torch => Vec::new(),
        _ => libraries(stack),
    };
    settings::all().iter().filter_map(move |setting| {
        let (library, fact) = first(&libraries, setting.path)?;
        // A test holds every fact's value to be one that its setting reads.
        Some((setting, setting.parse(fact.value).ok()?, library, fact))
    })
}

/// The uppermost library that has a default of this name.
fn first(
    libraries: &[(&'static catalog::Stack, (u8, u8))],
    key: &str,
) -> Option<(Library, &'static Fact)> {
    libraries.iter().find_map(|&(stack, version)| {
        let name = stack.name;
        Some((Library { name, version }, stack.fact(key, version)?))
    })
}

/// The trainer and the libraries below it, the upper ones first, in the versions that the scenario names.
fn libraries(stack: &Stack) -> Vec<(&'static catalog::Stack, (u8, u8))> {
    let Some(trainer) = catalog::stack(stack.trainer.id()) else {
        return Vec::new();
    };
    let version = |library: &catalog::Stack| match library.id {
        "torch" => stack.torch,
        "transformers" => stack.transformers,
        "peft" => stack.peft,
        id if id == trainer.id => stack.trainer_version.unwrap_or(library.last),
        _ => library.last,
    };
    std::iter::once(trainer)
        .chain(trainer.on.iter().filter_map(|id| catalog::stack(id)))
        .map(|stack| (stack, version(stack)))
        .collect()
}
