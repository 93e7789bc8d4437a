//! Files for other programs. User text goes through one quoting function for each language.

pub mod json;
pub mod shell;
pub mod yaml;

mod accelerate;
mod axolotl;
mod common;
mod header;
mod hf;
mod llamafactory;
mod plain;
mod trl;

use crate::estimate::Estimate;
use crate::scenario::{Problem, Scenario};

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// A plain name, without folders.
    pub name: &'static str,
    pub contents: String,
    pub executable: bool,
}

/// What a target makes of a scenario: its files, or every field that it cannot express.
pub type Files = Result<Vec<File>, Vec<Problem>>;

/// A program that a scenario can be written for.
#[derive(Debug)]
pub struct Target {
    /// The name in commands.
    pub id: &'static str,
    pub title: &'static str,
    /// The versions for which the files were checked.
    pub versions: &'static str,
    pub write: fn(&Scenario, &Estimate) -> Files,
}

/// All targets, in the order of the menu.
pub const TARGETS: &[Target] = &[
    plain::TARGET,
    hf::TARGET,
    trl::TARGET,
    accelerate::TARGET,
    axolotl::TARGET,
    llamafactory::TARGET,
];

/// The target with this id.
pub fn target(id: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.id == id)
}
