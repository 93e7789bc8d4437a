//! vLLM in the training process, on the same GPU.

use super::device;
use crate::step::VllmShare;
use headroom_base::units::Bytes;
use headroom_scenario::{Case, Objective, Sampler};

/// Whether vLLM runs on the training GPU.
fn samples(case: &Case) -> bool {
    let task = &case.scenario.training.task;
    let objective = matches!(
        task.objective,
        Objective::Grpo | Objective::Rloo | Objective::Distillation
    );
    objective && task.sampler == Sampler::Vllm
}

/// The memory it takes: its share of the GPU's total (`gpu_memory_utilization`), of which its own copy of the weights in 16 bits,
/// divided over the GPUs that share one, is a part.
pub(super) fn share(case: &Case) -> VllmShare {
    if !samples(case) {
        return VllmShare::NONE;
    }
    let whole = device::total(case).map_or(0, Bytes::get);
    let all = (whole as f64 * case.scenario.training.task.vllm_share) as u64;
    let weights = weights(case).unwrap_or(0).min(all);
    VllmShare {
        weights,
        cache: all - weights,
    }
}

/// Bytes of the weights that one GPU's vLLM loads.
fn weights(case: &Case) -> Option<u64> {
    let parameters = case.listed_model()?.parameters;
    let ways = case.scenario.training.task.vllm_tp.max(1);
    Some(parameters.saturating_mul(2) / ways)
}

/// The smallest share, in twentieths of the GPU, that holds the weights in 16 bits and as much again for its cache and
/// activations; `None` if vLLM runs elsewhere, or the GPU or the model is unknown.
pub fn least_vllm_share(case: &Case) -> Option<f64> {
    const PARTS: f64 = 20.0;
    let weights = weights(case)?;
    let whole = device::total(case)?.get();
    let known = samples(case) && case.scenario.model.dims.is_empty() && whole > 0;
    known.then(|| (2.0 * weights as f64 / whole as f64 * PARTS).ceil() / PARTS)
}
