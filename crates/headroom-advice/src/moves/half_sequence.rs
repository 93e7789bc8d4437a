//! Sequences of half the length.

use super::reads_sequences;
use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "half-sequence",
    title: "sequences of half the length",
    group: Group::Length,
    what: "Longer texts are truncated or split.",
    needs: "A network that reads sequences of 256 tokens or more.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: half the tokens.",
    quality: "The model sees less context.",
    source: "arXiv 2108.06084 (short sequences first); the tokens of an effective batch halve",
    caveat: "An effective batch has half the tokens.",
    code: "tokenizer(..., truncation=True, max_length=length)",
    apply: |run| {
        // Context parallelism deals a sequence out in twice as many pieces as it has ranks.
        let pieces = u64::from(run.parallel.cp).max(1) * 2;
        let task = &run.training.task;
        if task.objective.samples() {
            // Rows are what was sampled, however long the data's are.
            let half = task.completion / 2;
            return (half >= 128)
                .then(|| with(run, |changed| changed.training.task.completion = half));
        }
        let half = run.data.sequence / 2 / pieces * pieces;
        (reads_sequences(run) && half >= 128)
            .then(|| with(run, |changed| changed.data.sequence = half))
    },
};
