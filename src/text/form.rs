//! Texts of the form.

use headroom_scenario::{NameKind, Problem, one_of, settings};

pub const RESET_ABOUT: &str = "Revert every change since the chosen example";

/// A problem with a value, with the page's labels for settings.
pub fn problem(problem: &Problem) -> String {
    let (field, given) = (problem.field(), problem.given());
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

/// What a field accepts, where a text was refused.
pub fn expected(problem: &Problem) -> String {
    match problem {
        Problem::OutOfRange { min, max, .. } => format!("Expected {min} to {max}."),
        _ => format!("Expected {}.", problem.expected()),
    }
}

pub const SAMPLES: &str = "samples";
pub const TOKENS: &str = "tokens";
pub const PIXELS: &str = "pixels";

pub fn more(section: &str) -> String {
    format!("More: {}", section.to_ascii_lowercase())
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
