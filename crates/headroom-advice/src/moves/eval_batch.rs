//! Evaluate in batches no larger than in training.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "eval-batch",
    title: "evaluate in batches no larger than in training",
    group: Group::Evaluation,
    what: "The forward pass of an evaluation takes fewer samples at once.",
    needs: "An evaluation batch larger than the micro-batch.",
    cost: Cost::Free,
    never_worse: true,
    speed: "Evaluation runs in smaller batches; training does not change.",
    quality: "Identical.",
    source: "transformers TrainingArguments.per_device_eval_batch_size (8 by default); lightning#9219",
    caveat: "Metrics averaged over batches give a smaller last batch the same weight.",
    code: "DataLoader(validation, batch_size=micro_batch)",
    apply: |run| {
        let large = run.runtime.eval_batch > run.data.micro_batch;
        large.then(|| {
            with(run, |changed| {
                changed.runtime.eval_batch = changed.data.micro_batch;
            })
        })
    },
};
