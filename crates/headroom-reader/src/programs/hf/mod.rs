//! Programs on transformers' `Trainer` and TRL: their YAML, their scripts' flags, and Python that builds them.

pub mod adapters;
pub mod arguments;
mod examples;
mod known;
pub mod precision;
pub mod python;
mod scripts;
mod yaml;

use crate::facts::Facts;
use crate::program::{Form, Program, Source};

pub const PROGRAM: Program = Program {
    id: "transformers",
    name: "transformers",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => yaml::read(keys, source.beside),
        Form::Command { launch, flags } => scripts::read(source, launch, flags),
        Form::Python { module, launch } => python::read(source, module, launch.as_ref()),
    }
}
