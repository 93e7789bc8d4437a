//! A scenario from the settings that somebody gave, over the defaults of the version they gave them for.

use super::settings::{self, Setting, Value};
use super::{Problem, Scenario, Stack, stack, versions};

/// Fills a scenario; `given` says what was asked of a setting, and each refusal is added to the problems.
pub(crate) fn filled<'a>(
    version: u32,
    given: impl Fn(&Setting) -> Option<&'a str>,
    problems: &mut Vec<Problem>,
) -> Scenario {
    let software = software(&given);
    let mut scenario = Scenario::default();
    let defaults = versions::defaults(version).unwrap_or_default();
    for setting in settings::all() {
        let asked = given(setting);
        if let Some(parent) = parent_turned_off(setting, &given) {
            if let Some(value) = asked {
                let expected = format!("no value where {} is off", parent.path);
                problems.push(Problem::new(setting.path, value, expected));
            }
            continue;
        }
        let of_task = setting.section() == "task" && !setting.applies(&scenario);
        if let Some(value) = asked.filter(|_| of_task) {
            let expected = "no value: it means nothing for this task";
            problems.push(Problem::new(setting.path, value, expected));
            continue;
        }
        // A child's default must not turn its parent on; a child that was asked for does.
        if asked.is_none() && !setting.applies(&scenario) && !sibling_asked(setting, &given) {
            continue;
        }
        if let Some((_, frozen)) = defaults.iter().find(|(key, _)| *key == setting.key) {
            // A test holds every frozen value to be readable.
            let _ = setting.set(&mut scenario, frozen);
        }
        if let Some(value) = stack::default(setting, &software) {
            let _ = setting.set(&mut scenario, value);
        }
        if let Some(Err(problem)) = asked.map(|value| setting.set(&mut scenario, value)) {
            problems.push(problem);
        }
    }
    scenario
}

/// The software that was asked for.
fn software<'a>(given: &impl Fn(&Setting) -> Option<&'a str>) -> Stack {
    let mut scenario = Scenario::default();
    let of_software = |setting: &&Setting| setting.section() == "stack";
    for setting in settings::all().iter().filter(of_software) {
        if let Some(value) = given(setting) {
            // What is wrong with it is said where the scenario is filled.
            let _ = setting.set(&mut scenario, value);
        }
    }
    scenario.stack
}

/// The switch that this setting belongs to, where it was turned off by name.
fn parent_turned_off<'a>(
    setting: &Setting,
    given: &impl Fn(&Setting) -> Option<&'a str>,
) -> Option<&'static Setting> {
    let parent = settings::find(setting.parent?)?;
    let mut probe = Scenario::default();
    parent.set(&mut probe, given(parent)?).ok()?;
    (parent.value(&probe) == Value::Switch(false)).then_some(parent)
}

/// Whether another setting of the same parent was asked for.
fn sibling_asked<'a>(setting: &Setting, given: &impl Fn(&Setting) -> Option<&'a str>) -> bool {
    let of_parent = |other: &&Setting| other.parent == setting.parent;
    let mut siblings = settings::all().iter().filter(of_parent);
    setting.parent.is_some() && siblings.any(|sibling| given(sibling).is_some())
}
