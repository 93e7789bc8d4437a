//! Files for other programs. User text goes through one quoting function for each language.

pub mod shell;

mod accelerate;
mod adapters;
mod axolotl;
mod change;
mod command;
mod common;
mod deepspeed;
mod header;
mod hf;
mod job;
mod kubernetes;
mod layout;
mod lightning;
mod llamafactory;
mod megatron;
mod plain;
mod ray;
mod refuse;
mod remedy;
mod skypilot;
mod slurm;
mod starter;
mod swift;
mod systems;
mod task;
mod torchtitan;
mod torchtune;
mod trainer;
mod trl;
mod unsloth;
mod verl;
mod zip;

pub use change::{Change, expressing};
pub use command::command;
pub use remedy::{Remedy, shown};
pub use starter::Starter;
pub use systems::{Tier, tier_script};
pub(crate) use torchtitan::model_of as torchtitan_model;
pub(crate) use torchtune::model_of as torchtune_model;

use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Problem, Scenario, document};

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
    /// What the program does otherwise than the prediction takes it to; empty where there is nothing to say.
    pub differs: &'static str,
    pub write: fn(&Scenario, &Estimate) -> Files,
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// All targets, in the order of the menu.
pub const TARGETS: &[Target] = &[
    plain::TARGET,
    hf::TARGET,
    trl::TARGET,
    accelerate::TARGET,
    deepspeed::TARGET,
    axolotl::TARGET,
    llamafactory::TARGET,
    lightning::TARGET,
    swift::TARGET,
    unsloth::TARGET,
    verl::TARGET,
    torchtune::TARGET,
    torchtitan::TARGET,
    megatron::TARGET,
    slurm::TARGET,
    kubernetes::JOB,
    kubernetes::TRAINJOB,
    skypilot::TARGET,
    ray::TARGET,
    systems::DREAMS,
    systems::GSA,
    systems::RNA,
    systems::PRS_MED,
    systems::PEPTRM,
];

/// What every target makes of the scenario, in their order.
pub fn all(scenario: &Scenario, estimate: &Estimate) -> Vec<(&'static Target, Files)> {
    let made = |target: &'static Target| (target, (target.write)(scenario, estimate));
    TARGETS.iter().map(made).collect()
}

/// The target with this id.
pub fn target(id: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.id == id)
}

/// The target that writes a system's own files, where the scenario runs one.
pub fn own(scenario: &Scenario) -> Option<&'static Target> {
    systems::own(scenario)
}

/// The zip archive of all that was written, each target's files in a folder of its name, beside the scenario itself.
pub fn archive(scenario: &Scenario, all: &[(&'static Target, Files)]) -> Vec<u8> {
    let itself = File {
        name: "scenario.yaml",
        contents: yaml::write(&document::write(scenario)),
        executable: false,
    };
    let written = all.iter().flat_map(|(target, files)| {
        let files = files.as_deref().unwrap_or_default();
        files.iter().map(|file| (target.id, file))
    });
    zip::zip(std::iter::once(("headroom", &itself)).chain(written))
}
