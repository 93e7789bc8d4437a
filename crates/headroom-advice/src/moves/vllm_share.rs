//! A smaller share of the GPU for vLLM.

use super::{Cost, Group, Move, Results, with};
use headroom_core::estimate::least_vllm_share;
use headroom_scenario::Case;

pub const MOVE: Move = Move {
    id: "smaller-vllm-share",
    title: "a smaller share of the GPU for vLLM",
    group: Group::Cache,
    what: "vLLM gets its 16-bit weights and as much again for the KV cache, rounded up to a twentieth of the GPU.",
    needs: "vLLM on the same GPU with a larger share than that.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "Fewer completions are sampled at once.",
    quality: "Identical.",
    source: "trl/trainer/grpo_config.py (vllm_gpu_memory_utilization)",
    caveat: "vLLM does not start if its KV cache is too small for one completion of full length.",
    code: "GRPOConfig(vllm_gpu_memory_utilization=0.2)",
    apply: |run| {
        let share = least_vllm_share(&Case::of(run))?;
        (share < run.training.task.vllm_share)
            .then(|| with(run, |changed| changed.training.task.vllm_share = share))
    },
};
