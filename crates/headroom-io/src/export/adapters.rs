//! PEFT's methods in the scripts that Headroom writes itself: one file that knows how each calls its settings.

use super::File;
use super::common::file;
use headroom_scenario::{AdapterMethod, Problem, Scenario};

/// The file that makes the adapters, where there are any.
pub(super) fn beside(scenario: &Scenario) -> Option<File> {
    let lora = scenario.training.lora.as_ref();
    lora.map(|_| file("adapters.py", include_str!("adapters.py").into()))
}

/// What it cannot make.
pub(super) fn problems(scenario: &Scenario) -> Vec<Problem> {
    let Some(lora) = &scenario.training.lora else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if lora.method == AdapterMethod::LoraFa {
        let expected =
            "another method: LoRA-FA is an optimizer in PEFT, which this target does not set up";
        problems.push(Problem::new(
            "training.lora.method",
            lora.method.id(),
            expected,
        ));
    }
    let excludes = [AdapterMethod::Lora, AdapterMethod::Dora];
    if !lora.exclude.is_empty() && !excludes.contains(&lora.method) {
        let expected = "nothing: not all of PEFT's other methods take exclude_modules";
        problems.push(Problem::new(
            "training.lora.exclude",
            lora.exclude.join(","),
            expected,
        ));
    }
    problems
}
