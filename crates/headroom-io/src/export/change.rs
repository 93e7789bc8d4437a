//! What a change to a run is in a program's own files.

use std::collections::HashSet;

use super::header::header;
use super::{File, Target, targets};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Problem, Scenario};

/// How a program's files follow a change from one scenario to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Lines that the files lose and gain below their header.
    Lines {
        removed: Vec<String>,
        added: Vec<String>,
    },
    /// The program can run the changed scenario, but not the one before.
    Enabled,
    /// The files are the same: the program has no setting for the change.
    NotExpressed,
    /// Fields of the changed scenario that the program cannot express.
    Refused(Vec<Problem>),
}

impl Change {
    /// Whether the program can run the changed scenario and its files express the change.
    pub fn is_expressed(&self) -> bool {
        matches!(self, Self::Lines { .. } | Self::Enabled)
    }
}

impl Target {
    /// How this program's files follow a change from one scenario to another.
    pub fn change(&self, before: &Scenario, after: &Scenario) -> Change {
        let changed = match self.body(after) {
            Ok(changed) => changed,
            Err(problems) => return Change::Refused(problems),
        };
        match self.body(before) {
            Ok(original) => between(&original, &changed),
            Err(_) => Change::Enabled,
        }
    }

    /// Whether the program can run the last scenario and all between, and its files express each change from one to the next.
    pub fn expresses(&self, first: &Scenario, rest: &[&Scenario]) -> bool {
        let bodies: Result<Vec<_>, _> = rest.iter().map(|scenario| self.body(scenario)).collect();
        let Ok(bodies) = bodies else {
            return false;
        };
        let mut known = self.body(first).ok();
        if bodies.is_empty() {
            return known.is_some();
        }
        bodies.into_iter().all(|body| {
            let before = known.replace(body);
            match (before, &known) {
                (Some(before), Some(after)) => between(&before, after).is_expressed(),
                _ => true,
            }
        })
    }

    /// The lines of the files below their header, which names the scenario's link and so differs always.
    fn body(&self, scenario: &Scenario) -> Result<Vec<String>, Vec<Problem>> {
        let estimate = Estimate::default();
        let files = (self.write)(scenario, &estimate)?;
        Ok(lines(&files, &header(self, scenario, &estimate)))
    }
}

fn between(original: &[String], changed: &[String]) -> Change {
    let (removed, added) = (missing(original, changed), missing(changed, original));
    if removed.is_empty() && added.is_empty() {
        Change::NotExpressed
    } else {
        Change::Lines { removed, added }
    }
}

/// The programs that can run the changed scenario and have a setting for the change, in the order of the menu.
pub fn expressing(before: &Scenario, after: &Scenario) -> Vec<&'static Target> {
    targets()
        .iter()
        .filter(|target| target.change(before, after).is_expressed())
        .collect()
}

fn lines(files: &[File], header: &str) -> Vec<String> {
    let known: HashSet<&str> = header.lines().collect();
    let all = files.iter().flat_map(|file| file.contents.lines());
    // A script within another file is indented, header and all.
    all.map(str::trim)
        .filter(|line| !known.contains(line))
        .map(str::to_string)
        .collect()
}

/// The lines of the first list that the second lacks.
fn missing(from: &[String], other: &[String]) -> Vec<String> {
    let other: HashSet<&String> = other.iter().collect();
    let only = from.iter().filter(|line| !other.contains(line));
    only.cloned().collect()
}
