//! The search for the fastest run that fits.

use headroom_advice::Tally;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_scenario::{Checkpointing, Scenario};

pub const SMALLEST_CARD: &str = "smallest GPU";
pub const FEWEST_CARDS: &str = "fewest GPUs at this effective batch";
pub const FEWEST_CHECKPOINTS: &str = "least checkpointing";
pub const FASTEST_THAT_FITS: &str = "Search";
pub const SEARCH_ABOUT: &str = "Searches all combinations of changes and micro-batches for the fastest that fits. You can keep working.";
pub const SEARCH: &str = "Search again";
pub const NOTHING_FITS: &str = "No combination fits.";
pub const FASTEST: &str = "fastest";

pub fn batch_of(wanted: u64) -> String {
    format!("effective batch of {wanted}")
}

/// Which layers a run checkpoints.
pub fn checkpointed(scenario: &Scenario) -> String {
    match (
        scenario.training.checkpointing,
        scenario.training.checkpoint_every,
    ) {
        (Checkpointing::None, _) => "none".into(),
        (_, 1) => "every layer".into(),
        (_, every) => format!("one layer of {every}"),
    }
}

/// How far a search is, and what it did not have to look at.
pub fn searched(tally: &Tally) -> String {
    format!(
        "Checked {} of {} combinations in {} estimates: {} cannot be combined, {} too large, {} no better than one already found.",
        tally.settled,
        tally.space,
        tally.estimates,
        tally.impossible,
        tally.too_large,
        tally.dominated + tally.outdone
    )
}

/// What the axes of a search's drawing show.
pub fn front_axis(points: &[(Bytes, f64, bool)], units: UnitStyle) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    Some(format!("Memory ({}) by step time (s)", units.scale(most).1))
}
