//! vLLM in the process that trains, on the same card.

use super::device;
use headroom_base::units::Bytes;
use headroom_scenario::{Case, Objective, Sampler};

/// Whether vLLM samples on the card that trains.
fn samples(case: &Case) -> bool {
    let task = &case.scenario.training.task;
    let objective = matches!(
        task.objective,
        Objective::Grpo | Objective::Rloo | Objective::Distillation
    );
    objective && task.sampler == Sampler::Vllm
}

/// What it takes: its share of all of the card's memory (`gpu_memory_utilization`).
pub(super) fn taken(case: &Case) -> u64 {
    if !samples(case) {
        return 0;
    }
    let whole = device::total(case).map_or(0, Bytes::get);
    (whole as f64 * case.scenario.training.task.vllm_share) as u64
}

/// The smallest share, in twentieths of the card, that holds the weights in 16 bits and as much again for its cache and its
/// passes; `None` where vLLM is elsewhere, or where the card or the model is not known.
pub fn least_vllm_share(case: &Case) -> Option<f64> {
    const PARTS: f64 = 20.0;
    let weights = case.listed_model()?.parameters.saturating_mul(2);
    let whole = device::total(case)?.get();
    let known = samples(case) && case.scenario.model.dims.is_empty() && whole > 0;
    known.then(|| (2.0 * weights as f64 / whole as f64 * PARTS).ceil() / PARTS)
}
