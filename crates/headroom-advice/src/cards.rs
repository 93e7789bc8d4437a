//! The run on each common size of GPU, on one or several, at the same effective batch.

use super::planner::Locks;
use super::solve::on;
use super::tiers::{Tier, Variant, filled};
use headroom_catalog as catalog;
use headroom_core::estimate::{Prediction, Unsupported};
use headroom_scenario::{Scenario, systems};

/// A GPU memory size, and the catalogue's GPU that represents it.
#[derive(Debug, PartialEq, Eq)]
pub struct Card {
    /// Its marketed memory, in GB.
    pub size: &'static str,
    pub gpu: &'static str,
}

/// From large to small.
pub const CARDS: &[Card] = &[
    card("180", "b200-180gb"),
    card("141", "h200-sxm-141gb"),
    card("96", "rtx-pro-6000-blackwell-96gb"),
    card("80", "a100-sxm4-80gb"),
    card("48", "l40s-48gb"),
    card("40", "a100-sxm4-40gb"),
    card("32", "rtx-5090-32gb"),
    card("24", "rtx-4090-24gb"),
    card("16", "rtx-4080-16gb"),
    card("12", "rtx-3060-12gb"),
    card("8", "rtx-3070-8gb"),
];

const fn card(size: &'static str, gpu: &'static str) -> Card {
    Card { size, gpu }
}

/// The numbers of GPUs that are tried besides the run's own.
const COUNTS: [u32; 4] = [1, 2, 4, 8];

/// The run on `count` GPUs of a size.
#[derive(Clone, Debug)]
pub struct OnCards {
    pub card: &'static Card,
    pub gpus: u32,
    pub variant: Variant,
}

/// The largest micro-batch that surely fits these GPUs, for each number of them that the program supports and that divides
/// the batch.
pub fn on_cards(
    scenario: &Scenario,
    card: &'static Card,
    locks: &Locks,
) -> Result<Vec<OnCards>, Unsupported> {
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
        // As `tiers` judges the run on this GPU.
        let variant = filled(&prediction, Tier::Maximum, locks)?;
        all.push(OnCards {
            card,
            gpus,
            variant,
        });
    }
    Ok(all)
}
