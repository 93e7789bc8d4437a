//! Evaluation batches no larger than in training.

use std::num::NonZero;

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "eval-batch",
    title: "evaluation batches no larger than in training",
    group: Group::Evaluation,
    what: "An evaluation's forward pass has fewer samples at once.",
    needs: "An evaluation batch larger than the micro-batch.",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: true,
    speed: "Evaluation runs in smaller batches; training does not change.",
    quality: "Identical.",
    source: "transformers TrainingArguments.per_device_eval_batch_size (8 by default); lightning#9219",
    caveat: "Metrics averaged over batches give a smaller last batch the same weight as the others.",
    code: "DataLoader(validation, batch_size=micro_batch)",
    apply: |run| {
        let batch = NonZero::new(run.data.micro_batch);
        let large = run.runtime.eval_batch > batch;
        large.then(|| {
            with(run, |changed| {
                changed.runtime.eval_batch = batch;
            })
        })
    },
};
