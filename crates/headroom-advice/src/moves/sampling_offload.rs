//! Parameters and optimizer states in host memory while vLLM samples.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{Sampler, SamplingOffload, Trainer};

pub const MOVE: Move = Move {
    id: "sampling-offload",
    title: "keep parameters and optimizer states in host memory while vLLM samples",
    group: Group::Cache,
    what: "Makes room for vLLM: what the update needs leaves the GPU before a round of sampling and comes back after it.",
    needs: "verl with FSDP, and a vLLM that sleeps during training.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "Both are copied over the bus twice in each round.",
    quality: "Identical.",
    source: "verl/workers/fsdp_workers.py (offload_fsdp_model_to_cpu, offload_fsdp_optimizer)",
    caveat: "",
    code: "actor_rollout_ref.actor.fsdp_config.param_offload=True actor_rollout_ref.actor.fsdp_config.optimizer_offload=True",
    apply: |run| {
        let task = &run.training.task;
        let stays = task.sampler == Sampler::Vllm
            && task.vllm_sleep
            && task.sampling_offload != SamplingOffload::Both
            && run.stack.trainer == Trainer::Verl;
        (stays && task.objective.samples()).then(|| {
            with(run, |changed| {
                changed.training.task.sampling_offload = SamplingOffload::Both;
            })
        })
    },
};
