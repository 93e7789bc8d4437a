//! Reading what others wrote. Nothing read is trusted: every problem is a value, and sizes are bounded.

pub mod config;
pub mod json;
pub mod tools;
#[cfg(feature = "cli")]
pub mod yaml;

use crate::document::Document;
use crate::scenario::{Problem, Scenario, document};
use crate::share;

/// What a file held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    pub scenario: Scenario,
    /// Values that could not be used.
    pub problems: Vec<Problem>,
    /// Keys that say something for which a scenario has no word.
    pub not_taken: Vec<String>,
}

/// The scenario of a file that Headroom wrote, from the link in its head: exact, whatever the file's form.
pub fn linked(text: &str) -> Option<Imported> {
    let mut links = text
        .lines()
        .take(20)
        .filter_map(|line| line.strip_prefix("# Scenario: "));
    let link = links.find(|link| link.starts_with("#v="))?;
    let opened = share::read(link);
    Some(Imported {
        scenario: opened.scenario,
        problems: opened.problems,
        not_taken: Vec::new(),
    })
}

/// The scenario of a document, whichever program wrote it.
pub fn read(read: &Document) -> Imported {
    if config::recognises(read) {
        return config::read(read);
    }
    if tools::recognises(read) {
        return tools::read(read);
    }
    let (scenario, problems) = document::read(read);
    Imported {
        scenario,
        problems,
        not_taken: Vec::new(),
    }
}
