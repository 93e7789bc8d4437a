//! The result of a command: an answer, or a refusal.

use serde::Serialize;

use super::drawing::Drawing;
use headroom_base::document::{Document, json};
use headroom_core::estimate::{Band, Unsupported};
use headroom_scenario::Problem;

/// A command's answer, as text and as JSON.
pub(super) struct Answer {
    pub text: String,
    pub json: String,
    /// What a terminal shows beside the text.
    pub drawing: Option<Drawing>,
    /// Notes on the answer, for standard error.
    pub notes: Vec<String>,
    pub fits: bool,
    /// Of a part of what was asked nothing can be said.
    pub undecided: bool,
}

impl Answer {
    pub(super) fn new(text: String, document: &Document) -> Self {
        Self::with_json(text, json::write(document))
    }

    pub(super) const fn with_json(text: String, json: String) -> Self {
        Self {
            text,
            json,
            drawing: None,
            notes: Vec::new(),
            fits: true,
            undecided: false,
        }
    }

    /// The exit code.
    pub(super) const fn code(&self) -> u8 {
        match (self.fits, self.undecided) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => 0,
        }
    }
}

/// Why a command has no answer; each line names one problem.
pub(super) struct Refusal(pub Vec<String>);

impl Refusal {
    /// The same as JSON.
    pub(super) fn json(&self) -> String {
        let lines = self.0.iter().map(|line| Document::from(line.as_str()));
        json::write(&Document::new().with("errors", Document::List(lines.collect())))
    }
}

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

/// A file that cannot be read, and why in a few words.
pub(super) fn unreadable(name: &str, error: &std::io::Error) -> Refusal {
    use std::io::ErrorKind;
    let why = match error.kind() {
        ErrorKind::NotFound => "no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::InvalidData => "it is not text in UTF-8".into(),
        _ => error.to_string(),
    };
    // The name as problems have it: short and printable.
    let name = Problem::new("FILE", name, "");
    Refusal(vec![format!("cannot read `{}`: {why}", name.given())])
}

/// A band in JSON; bytes are integers.
pub(super) fn band(band: Band) -> Document {
    Document::new()
        .with("low", band.low)
        .with("expected", band.expected)
        .with("high", band.high)
}

/// The name of an enum value in JSON.
pub(super) fn name(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
