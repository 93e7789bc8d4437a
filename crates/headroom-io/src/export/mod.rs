//! Files for other programs. User text goes through one quoting function for each language.

pub mod shell;

mod accelerate;
mod adapters;
mod ai_toolkit;
mod axolotl;
mod change;
mod command;
pub mod common;
mod deepspeed;
mod diffusers;
mod diffusion;
mod diffusion_pipe;
pub mod header;
mod hf;
mod job;
mod kohya;
mod kubernetes;
mod layout;
mod lightning;
mod llamafactory;
mod megatron;
mod musubi;
mod onetrainer;
mod plain;
mod ray;
mod refuse;
mod remedy;
mod simpletuner;
mod skypilot;
mod slurm;
mod starter;
mod swift;
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
pub use remedy::{Remedy, Startable, shown};
pub use starter::Starter;
pub(crate) use torchtitan::model_of as torchtitan_model;
pub(crate) use torchtune::model_of as torchtune_model;

use std::sync::OnceLock;

use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Problem, Scenario, document, systems};

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// A plain name, without folders.
    pub name: &'static str,
    pub contents: String,
    pub executable: bool,
}

/// A target's files for a scenario, or every field that it cannot express.
pub type Files = Result<Vec<File>, Vec<Problem>>;

/// A program that a scenario can be written for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name in commands.
    pub id: &'static str,
    pub title: &'static str,
    /// The versions for which the files were checked.
    pub versions: &'static str,
    /// Where the program differs from what the prediction assumes; may be empty.
    pub differs: &'static str,
    pub write: fn(&Scenario, &Estimate) -> Files,
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

const TARGETS: &[Target] = &[
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
    kohya::TARGET,
    diffusers::TARGET,
    musubi::TARGET,
    ai_toolkit::TARGET,
    simpletuner::TARGET,
    diffusion_pipe::TARGET,
    onetrainer::TARGET,
    torchtune::TARGET,
    torchtitan::TARGET,
    megatron::TARGET,
    slurm::TARGET,
    kubernetes::JOB,
    kubernetes::TRAINJOB,
    skypilot::TARGET,
    ray::TARGET,
];

/// Both lists, where a plug-in has registered its own targets.
static ALL: OnceLock<Vec<Target>> = OnceLock::new();

/// All targets in the order of the menu, those of a plug-in last.
pub fn targets() -> &'static [Target] {
    ALL.get().map_or(TARGETS, Vec::as_slice)
}

/// Adds the targets of a plug-in, once.
pub fn register(targets: &[Target]) {
    ALL.get_or_init(|| [TARGETS, targets].concat());
}

/// The files of every target, in order.
pub fn all(scenario: &Scenario, estimate: &Estimate) -> Vec<(&'static Target, Files)> {
    let made = |target: &'static Target| (target, (target.write)(scenario, estimate));
    targets().iter().map(made).collect()
}

/// The target with this id.
pub fn target(id: &str) -> Option<&'static Target> {
    targets().iter().find(|target| target.id == id)
}

/// The target that writes a system's own files, if the scenario runs one.
pub fn own(scenario: &Scenario) -> Option<&'static Target> {
    target(systems::of(scenario)?.target)
}

/// A zip archive of all files, each target's in a folder of its name, and of the scenario itself.
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
