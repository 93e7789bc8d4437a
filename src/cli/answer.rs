//! What a command returns: an answer, or a refusal.

use crate::document::{Document, json};
use crate::estimate::Unsupported;
use crate::scenario::Problem;

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
