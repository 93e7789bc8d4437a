//! What a change to a run is in a program's own files.

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
        let estimate = Estimate::default();
        let files = |scenario| (self.write)(scenario, &estimate);
        let changed = match files(after) {
            Ok(changed) => changed,
            Err(problems) => return Change::Refused(problems),
        };
        let Ok(original) = files(before) else {
            return Change::Enabled;
        };
        // The header names the scenario's link, which differs always.
        let original = lines(&original, &header(self, before, &estimate));
        let changed = lines(&changed, &header(self, after, &estimate));
        let (removed, added) = (missing(&original, &changed), missing(&changed, &original));
        if removed.is_empty() && added.is_empty() {
            Change::NotExpressed
        } else {
            Change::Lines { removed, added }
        }
    }
}

/// The programs that can run the changed scenario and have a setting for the change, in the order of the menu.
pub fn expressing(before: &Scenario, after: &Scenario) -> Vec<&'static Target> {
    targets()
        .iter()
        .filter(|target| target.change(before, after).is_expressed())
        .collect()
}

/// The lines of the files below their header.
fn lines<'a>(files: &'a [File], header: &str) -> Vec<&'a str> {
    let known: Vec<&str> = header.lines().collect();
    let all = files.iter().flat_map(|file| file.contents.lines());
    // A script within another file is indented, header and all.
    all.map(str::trim)
        .filter(|line| !known.contains(line))
        .collect()
}

/// The lines of the first list that the second lacks.
fn missing(from: &[&str], other: &[&str]) -> Vec<String> {
    let only = from.iter().filter(|line| !other.contains(line));
    only.map(ToString::to_string).collect()
}
