//! vLLM's sleep mode during training.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{Objective, Sampler};

pub const MOVE: Move = Move {
    id: "vllm-sleep",
    title: "let vLLM sleep during training",
    group: Group::Cache,
    what: "Frees vLLM's weights and KV cache after each round of sampling.",
    needs: "vLLM on the same GPU.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "Weights are copied to vLLM again before each round.",
    quality: "Identical.",
    source: "trl/generation/vllm_generation.py (enable_sleep_mode)",
    caveat: "",
    code: "GRPOConfig(vllm_enable_sleep_mode=True)",
    apply: |run| {
        let task = &run.training.task;
        let samples = matches!(
            task.objective,
            Objective::Grpo | Objective::Rloo | Objective::Distillation
        );
        let awake = samples && task.sampler == Sampler::Vllm && !task.vllm_sleep;
        awake.then(|| with(run, |changed| changed.training.task.vllm_sleep = true))
    },
};
