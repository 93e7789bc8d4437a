//! Cards: the run on each usual size of card and for several of them, with the effective batch kept.

use super::goal::Goal;
use super::solve::on;
use super::tiers::{Tier, Variant, filled};
use headroom_catalog as catalog;
use headroom_core::estimate::{Prediction, Unsupported};
use headroom_scenario::{Scenario, systems};

/// A size of card, and the one of the catalogue that stands for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Card {
    /// Its memory as shops name it, in GB.
    pub size: &'static str,
    pub gpu: &'static str,
}

/// From large to small.
pub const CARDS: &[Card] = &[
    card("80", "a100-sxm4-80gb"),
    card("48", "l40s-48gb"),
    card("40", "a100-sxm4-40gb"),
    card("24", "rtx-4090-24gb"),
    card("16", "rtx-4080-16gb"),
    card("8", "rtx-3070-8gb"),
];

const fn card(size: &'static str, gpu: &'static str) -> Card {
    Card { size, gpu }
}

/// How many cards are tried: the run's own number and these.
const COUNTS: [u32; 4] = [1, 2, 4, 8];

/// The run on so many cards of a size.
#[derive(Clone, Debug)]
pub struct OnCards {
    pub card: &'static Card,
    pub gpus: u32,
    pub variant: Variant,
}

/// The fullest run that surely fits these cards, for each number of them that its program takes and that divides the batch.
pub fn on_cards(scenario: &Scenario, card: &'static Card) -> Result<Vec<OnCards>, Unsupported> {
    let Some(gpu) = catalog::gpu(card.gpu) else {
        return Ok(Vec::new());
    };
    let samples = scenario.effective_batch();
    let mut counts = COUNTS.to_vec();
    if !counts.contains(&scenario.hardware.gpus) {
        counts.push(scenario.hardware.gpus);
    }
    let mut all = Vec::new();
    for gpus in counts {
        let mut changed = on(scenario, gpu);
        changed.hardware.gpus = gpus;
        changed.hardware.nodes = 1;
        let replicas = changed.replicas().max(1);
        if !samples.is_multiple_of(replicas) || !changed.check().is_empty() {
            continue;
        }
        if !systems::follows(scenario, &changed) {
            continue;
        }
        changed.data.micro_batch = samples / replicas;
        changed.training.accumulation = 1;
        let prediction = Prediction::new(changed);
        let goal = Goal::sure(prediction.estimate()?);
        let variant = filled(&prediction, Tier::Maximum, goal)?;
        all.push(OnCards {
            card,
            gpus,
            variant,
        });
    }
    Ok(all)
}
