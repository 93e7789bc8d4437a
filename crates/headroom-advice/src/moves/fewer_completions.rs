//! Groups of completions that fit into one micro-batch.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{Objective, Sampler};

pub const MOVE: Move = Move {
    id: "fewer-completions",
    title: "no more completions per prompt than a micro-batch holds",
    group: Group::Cache,
    what: "Samples groups of one micro-batch, so the KV cache never holds more than that.",
    needs: "Groups larger than the micro-batches of all GPUs together, which hold at least two completions.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Slower sampling, in smaller batches.",
    quality: "Advantages are estimated from smaller groups and are noisier.",
    source: "trl/trainer/grpo_config.py (num_generations), arXiv 2402.03300 section 4",
    caveat: "",
    code: "GRPOConfig(num_generations=4, steps_per_generation=1)",
    apply: |run| {
        let task = &run.training.task;
        let groups = matches!(task.objective, Objective::Grpo | Objective::Rloo);
        let itself = matches!(task.sampler, Sampler::Generate | Sampler::Static);
        let rows = run
            .data
            .micro_batch
            .saturating_mul(run.hardware.gpus.into());
        let smaller = rows >= 2 && task.generations > rows;
        (groups && itself && smaller).then(|| {
            with(run, |changed| {
                changed.training.task.generations = rows;
                changed.training.task.generation_batches = 1;
            })
        })
    },
};
