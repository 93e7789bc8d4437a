//! Metrics that let go after each evaluation.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "reset-metrics",
    title: "reset metrics after each evaluation",
    group: Group::Evaluation,
    what: "Metrics whose values are logged are reset, so that they keep nothing of earlier evaluations.",
    needs: "A loop whose metrics keep something of each evaluation (runtime.eval_keeps).",
    cost: Cost::Free,
    never_worse: true,
    speed: "The same.",
    quality: "Identical: what is logged are the values of each batch.",
    source: "torchmetrics issues 1949 and 2921",
    caveat: "",
    code: "self.val_metrics.reset()",
    apply: |run| {
        (run.runtime.eval_keeps > 0).then(|| with(run, |changed| changed.runtime.eval_keeps = 0))
    },
};
