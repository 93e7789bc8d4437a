//! Five research systems as one plug-in: their networks, presets, export targets, readers, and the claims of their
//! memory guides compared with predictions.
//!
//! Rooms below know nothing of them: `install` registers them there.

mod descriptors;
mod export;
pub mod guide;
mod import;
mod nets;
mod presets;
#[cfg(test)]
mod tests;

pub use export::{Tier, tier_script};

/// Registers all of it; again, it does nothing.
pub fn install() {
    crate::nets::register(nets::FAMILIES);
    crate::scenario::presets::register(presets::PRESETS);
    crate::scenario::systems::register(descriptors::SYSTEMS);
    crate::export::register(export::TARGETS);
    crate::import::register(&import::READERS);
}
