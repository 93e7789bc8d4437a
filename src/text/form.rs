//! Settings and their fields.

use headroom_scenario::{Problem, settings};

pub const RESET_ABOUT: &str = "Take back every change since the chosen example";

/// What is wrong with a value, by the names that the page has for settings.
pub fn problem(problem: &Problem) -> String {
    let Problem {
        field,
        value,
        expected,
    } = problem;
    let kind = match field.as_str() {
        "model.id" => Some("model"),
        "hardware.gpu" => Some("GPU"),
        _ => None,
    };
    let near = expected.split_once("did you mean ").map(|(_, near)| near);
    let unknown = near.is_some() || expected.contains("of `headroom catalog`");
    match (kind.filter(|_| unknown), near) {
        (Some(kind), Some(near)) => format!("No {kind} is called “{value}”. Did you mean {near}"),
        (Some(kind), None) => format!("No {kind} is called “{value}”."),
        (None, _) => {
            let label = settings::find(field).map_or(field.as_str(), |setting| setting.label);
            let end = if expected.ends_with('?') { "" } else { "." };
            format!("{label} is “{value}”; expected {expected}{end}")
        }
    }
}

pub const SAMPLES: &str = "samples";
pub const TOKENS: &str = "tokens";
pub const PIXELS: &str = "pixels";

pub fn more(section: &str) -> String {
    format!("More: {}", section.to_ascii_lowercase())
}

pub const CHANGED_SETTING: &str = "changed";

/// What a click on "changed" does.
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
    fn a_problem_ends_once() {
        let check = |expected: &str, ends: &str| {
            let told = problem(&Problem::new("strategy", "fsdp2", expected));
            assert!(told.ends_with(ends), "{told}");
        };
        check(
            "a known field; did you mean parallel.strategy?",
            "strategy?",
        );
        check("a whole number", "number.");
    }
}
