//! Resetting metrics after each evaluation.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "reset-metrics",
    title: "reset metrics after each evaluation",
    group: Group::Evaluation,
    what: "Logged metrics are reset, so they keep nothing from earlier evaluations.",
    needs: "A loop whose metrics keep tensors from each evaluation (runtime.eval_keeps).",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: true,
    speed: "The same.",
    quality: "Identical: the values of each batch are logged.",
    source: "torchmetrics issues 1949 and 2921",
    caveat: "",
    code: "self.val_metrics.reset()",
    apply: |run| {
        (run.runtime.eval_keeps > 0).then(|| with(run, |changed| changed.runtime.eval_keeps = 0))
    },
};
