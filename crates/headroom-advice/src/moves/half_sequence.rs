//! Sequences of half the length.

use super::reads_sequences;
use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "half-sequence",
    title: "sequences of half the length",
    group: Group::Length,
    what: "Longer texts are truncated or split.",
    needs: "A network on sequences of 256 tokens or more.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster: half the tokens.",
    quality: "The model sees less context.",
    source: "arXiv 2108.06084 (short sequences first); the tokens per effective batch halve",
    caveat: "An effective batch has half the tokens.",
    code: "tokenizer(..., truncation=True, max_length=length)",
    apply: |run| {
        // Context parallelism splits a sequence into twice as many chunks as it has ranks.
        let pieces = u64::from(run.parallel.cp).max(1) * 2;
        let task = &run.training.task;
        if task.objective.samples() {
            // Rows are sampled completions, whatever the data's lengths.
            let half = task.completion / 2;
            return (half >= 128)
                .then(|| with(run, |changed| changed.training.task.completion = half));
        }
        let half = run.data.sequence / 2 / pieces * pieces;
        (reads_sequences(run) && half >= 128)
            .then(|| with(run, |changed| changed.data.sequence = half))
    },
};
