//! Sampling for one micro-batch at a time.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{Objective, Sampler};

pub const MOVE: Move = Move {
    id: "sample-less-at-once",
    title: "sample for one micro-batch at a time",
    group: Group::Cache,
    what: "The KV cache holds one micro-batch's completions instead of a whole step's.",
    needs: "Several micro-batches per step, each with complete groups of completions.",
    cost: Cost::Time,
    results: Results::Rounding,
    never_worse: false,
    speed: "Slower sampling, in smaller batches.",
    quality: "Identical.",
    source: "trl/trainer/grpo_config.py (steps_per_generation)",
    caveat: "",
    code: "GRPOConfig(steps_per_generation=1)",
    apply: |run| {
        let task = &run.training.task;
        let groups = matches!(task.objective, Objective::Grpo | Objective::Rloo);
        let itself = matches!(task.sampler, Sampler::Generate | Sampler::Static);
        let several = match task.generation_batches {
            0 => run.training.accumulation > 1,
            batches => batches > 1,
        };
        let rows = run
            .data
            .micro_batch
            .saturating_mul(run.hardware.gpus.into());
        let whole = rows.is_multiple_of(task.generations.max(1));
        (groups && itself && several && whole)
            .then(|| with(run, |changed| changed.training.task.generation_batches = 1))
    },
};
