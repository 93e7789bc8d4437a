//! Python that builds a trainer of transformers, TRL or Unsloth.

pub mod adapter;
mod calls;
mod classes;
pub mod model;
mod trainer;

pub use calls::{Calls, argument, last};

use crate::facts::Facts;
use crate::program::Source;
use crate::programs::launched;
use headroom_scripts::python::Module;
use headroom_scripts::shell::Launch;

pub fn read(source: &Source, module: &Module, launch: Option<&Launch>) -> Option<Facts> {
    let calls = Calls::new(module);
    let trainer = trainer::Trainer::find(&calls)?;
    let mut facts = trainer.facts(&calls, source.beside);
    if let Some(launch) = launch {
        launched::apply(
            launch,
            &trainer.arguments(&calls),
            source.beside,
            &mut facts,
        );
    } else {
        trainer::Trainer::alone(&mut facts);
    }
    trainer.settle(&calls, &mut facts);
    Some(facts)
}
