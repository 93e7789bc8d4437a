//! What a command returns: an answer, or a refusal.

use serde::Serialize;

use headroom_base::document::{Document, json};
use headroom_core::estimate::{Band, Unsupported};
use headroom_scenario::Problem;

/// A command's answer, for people and for programs.
pub(super) struct Answer {
    pub text: String,
    pub json: String,
    /// Notes beside the answer, for standard error.
    pub notes: Vec<String>,
    pub fits: bool,
}

impl Answer {
    pub(super) fn new(text: String, document: &Document) -> Self {
        Self {
            text,
            json: json::write(document),
            notes: Vec::new(),
            fits: true,
        }
    }
}

/// Why a command has no answer; each line names one problem.
pub(super) struct Refusal(pub Vec<String>);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(vec![problem.to_string()])
    }
}

impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems.iter().map(ToString::to_string).collect())
    }
}

impl From<Unsupported> for Refusal {
    fn from(unsupported: Unsupported) -> Self {
        Self(vec![format!("cannot be estimated: {unsupported}")])
    }
}

/// A band as JSON has it; bytes are integers.
pub(super) fn band(band: Band) -> Document {
    Document::new()
        .with("low", band.low)
        .with("expected", band.expected)
        .with("high", band.high)
}

/// The name that an enum has in JSON.
pub(super) fn name(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
