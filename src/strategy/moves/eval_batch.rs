//! Evaluate in batches no larger than those of training.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "eval-batch",
    title: "evaluate in batches no larger than those of training",
    group: Group::Evaluation,
    what: "A forward pass without gradients over fewer samples at once.",
    needs: "The evaluation batch is larger than the micro-batch.",
    cost: Cost::Free,
    never_worse: true,
    speed: "Evaluation runs in smaller batches; training is as it was.",
    quality: "None.",
    source: "transformers TrainingArguments.per_device_eval_batch_size (8 by default); lightning#9219",
    caveat: "Metrics averaged over batches weigh a last, smaller batch alike.",
    code: "DataLoader(validation, batch_size=micro_batch)",
    apply: |s| {
        let large = s.runtime.eval_batch > s.data.micro_batch;
        large.then(|| with(s, |it| it.runtime.eval_batch = it.data.micro_batch))
    },
};
