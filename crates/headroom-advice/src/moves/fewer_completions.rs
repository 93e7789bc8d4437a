//! Groups of completions that fit into one micro-batch.

use super::{Cost, Group, Move, with};
use headroom_scenario::{Objective, Sampler};

pub const MOVE: Move = Move {
    id: "fewer-completions",
    title: "as few completions of a prompt as a micro-batch holds",
    group: Group::Cache,
    what: "Samples groups of one micro-batch, so that keys and values of no more are cached at once.",
    needs: "Larger groups than a micro-batch on all GPUs, which holds two completions or more.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Sampling is slower: its batches are smaller.",
    quality: "Advantages are compared within smaller groups, and are noisier.",
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
