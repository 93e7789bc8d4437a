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
    headroom_core::network::register(nets::FAMILIES);
    headroom_scenario::presets::register(presets::PRESETS);
    headroom_scenario::systems::register(descriptors::SYSTEMS);
    headroom_io::export::register(export::TARGETS);
    headroom_io::import::register(&import::READERS);
}
