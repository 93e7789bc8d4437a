//! Texts of the breakdown.

use headroom_core::estimate::{Category, Phase};
use headroom_scenario::{Sampler, Scenario};

pub const VLLM: &str = "vLLM and buffers";
pub const VLLM_WHY: &str = "vLLM's weights and key-value cache on this GPU, and tensors of the model that are not trained.";
/// Whether vLLM's weights and cache are among the buffers: they are there from step to step, as those are.
pub fn holds_vllm(scenario: &Scenario) -> bool {
    let task = &scenario.training.task;
    task.objective.samples() && task.sampler == Sampler::Vllm
}

/// A category's label in this run.
pub const fn label_of(category: Category, with_vllm: bool) -> &'static str {
    match category {
        Category::Buffers if with_vllm => VLLM,
        _ => super::category(category).1,
    }
}

pub const BAR: &str = "GPU memory";
pub const BREAKDOWN: &str = "Where the memory goes";

pub fn at_the_peak(phase: Phase) -> String {
    format!(
        "at the peak of a step, in {}",
        super::phase(phase).to_ascii_lowercase()
    )
}

pub const FORWARD_END: &str = "After the forward pass";
pub const BETWEEN: &str = "Between steps";
pub const WHOLE_MODEL: &str = "Everything";
pub const MODULE_PATH: &str = "Module path";
pub const TABLE: &str = "Table";
pub const BY_MODULE: &str = "By module";
pub const TENSORS: &str = "Tensors alive at the peak";
pub const INSIDE: &str = "Tensors of";
pub const OUTSIDE: &str = "outside the model";
pub const HOST_AND_DISK: &str = "Host memory and disk";
pub const SMALLER: &str = "smaller items";

/// Why a tensor is kept until backward.
pub fn kept_for(operations: &str) -> String {
    format!("backward of {operations}")
}

pub const ALIVE: &str = "Alive at this point";
