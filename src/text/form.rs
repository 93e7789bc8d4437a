//! Texts of the form.

use super::short_choice;
use headroom_core::estimate::Unsupported;
use headroom_scenario::resolve::Origin;
use headroom_scenario::{NameKind, Parallelism, Problem, one_of, settings};

pub const RESET_ABOUT: &str = "Revert every change since the chosen example";

/// A problem with a value, with the page's labels for settings.
pub fn problem(problem: &Problem) -> String {
    let (field, given) = (problem.field(), problem.given());
    if field == STRATEGY && problem.expected().contains("hardware.gpus above 1") {
        let choice =
            Parallelism::from_id(given).map_or(given.into(), |it| short_choice(it.label()));
        return format!("{choice} needs at least 2 GPUs.");
    }
    let label = settings::find(field).map_or(field, |setting| setting.label);
    match problem {
        Problem::UnknownName { kind, near, .. } => {
            let unknown = match kind {
                NameKind::Setting => format!("No setting is called “{field}”."),
                NameKind::Gpu => format!("No GPU is called “{given}”."),
                NameKind::Model | NameKind::ImportedModel => {
                    format!("No model is called “{given}”.")
                }
                _ => format!("{label} is “{given}”; expected {}.", kind.noun()),
            };
            match one_of(near) {
                Some(near) => format!("{unknown} Did you mean {near}?"),
                None => unknown,
            }
        }
        Problem::Conflict { with, value, .. } => {
            format!("{label} has no effect while {} is {value}.", with.label)
        }
        _ => format!("{label} is “{given}”; expected {}.", problem.expected()),
    }
}

const STRATEGY: &str = "parallel.strategy";

/// Why there is no answer.
pub fn unsupported(unsupported: &Unsupported) -> String {
    match unsupported {
        Unsupported::NothingTrained(of) if of.field() == "training.lora.targets" => {
            format!("LoRA matches no layer here: {}.", of.expected())
        }
        Unsupported::NothingTrained(of) | Unsupported::Setting(of) => problem(of),
        other => other.to_string(),
    }
}

/// What set a value, if that was not the person.
pub fn source(origin: &Origin) -> Option<String> {
    Some(match origin {
        Origin::User => return None,
        Origin::Format(_) => "default".into(),
        Origin::Catalogue { .. } => "this model's own".into(),
        Origin::Trainer { library, .. } => format!("{library}'s default"),
        Origin::Preset(_) => "from the preset".into(),
        Origin::Link => "from the link".into(),
        Origin::Method { why, .. } => (*why).into(),
        Origin::File {
            tool: "sentence", ..
        } => "as you wrote".into(),
        Origin::File { tool, key } => format!("{key} ({tool})"),
        Origin::Assumed(why) => why.clone(),
    })
}

/// What a field accepts, where a text was refused.
pub fn expected(problem: &Problem) -> String {
    match problem {
        Problem::OutOfRange { min, max, .. } => format!("Expected {min} to {max}."),
        _ => format!("Expected {}.", problem.expected()),
    }
}

pub const MAP: &str = "Batches that fit, by sequence length";
pub const MAP_OF_PICTURES: &str = "Batches that fit, by resolution";
pub const MAP_OF_VIDEOS: &str = "Frames that fit, by resolution";
pub const FRAMES: &str = "frames";
pub const SAMPLES: &str = "samples";
pub const TOKENS: &str = "tokens";
pub const PIXELS: &str = "pixels";

pub const FORM: &str = "Settings";
pub const SETTINGS: &str = "The training run";
pub const EVERY_SETTING: &str = "All settings";
pub const FIND_SETTING: &str = "Find a setting";
pub const FIND_SETTING_EXAMPLE: &str = "Find a setting ( / )";

pub fn set_by(source: &str) -> String {
    format!("Set by: {source}.")
}

pub fn settings_found(found: usize, most: usize) -> String {
    match found {
        0 => "No setting matches.".into(),
        1 => "1 setting".into(),
        _ if found <= most => format!("{found} settings"),
        _ => format!("{most} of {found} settings; type more"),
    }
}

pub const CHANGED_SETTING: &str = "changed";

/// The label of the "changed" button.
pub fn reset_setting(label: &str, before: &str) -> String {
    match before {
        "" => format!("{label}: changed. Clear it again"),
        _ => format!("{label}: changed. Back to {before}"),
    }
}

pub fn changed(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!("{count} changed"),
    }
}

pub const NO_MATCH: &str = "No match. The nearest are:";

pub fn choices(label: &str) -> String {
    format!("Options: {label}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_worded_by_its_kind() {
        let check = |problem: Problem, expected: &str| {
            assert_eq!(super::problem(&problem), expected);
        };
        check(
            settings::unknown("strategy", "fsdp2"),
            "No setting is called “strategy”. Did you mean parallel.strategy?",
        );
        check(
            settings::find("data.micro_batch")
                .unwrap()
                .parse("0")
                .unwrap_err(),
            "Micro-batch is “0”; expected a whole number from 1 to 1000000.",
        );
    }
}
