//! Files that are a part of a run: DeepSpeed's and Accelerate's.

mod accelerate;
mod deepspeed;

pub use accelerate::Accelerate;
pub use deepspeed::{DeepSpeed, stage_of};

use super::facts::{Ask, Facts};
use super::keys::Keys;

/// What such a file says on its own; its model and sizes are asked for.
pub fn read(keys: &Keys) -> Option<Facts> {
    let facts = if let Some(found) = Accelerate::read(keys) {
        let mut facts = Facts::default();
        found.apply(&mut facts);
        facts
    } else {
        let found = DeepSpeed::read(keys)?;
        let mut facts = Facts::default();
        found.apply(&mut facts);
        facts
    };
    let mut facts = facts;
    facts.ask(Ask::Model, "the file is for any model");
    Some(facts)
}
