//! Drop the model's output before backward.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "drop-outputs",
    title: "drop the model's output before backward",
    group: Group::Outputs,
    what: "Frees the logits once the loss is computed; a loop that keeps `outputs` holds them through backward.",
    needs: "The loop keeps the model's output.",
    cost: Cost::Free,
    never_worse: true,
    speed: "No change.",
    quality: "Identical.",
    source: "PyTorch FAQ, \"My model reports cuda runtime error(2)\": https://docs.pytorch.org/docs/stable/notes/faq.html",
    caveat: "",
    code: "loss = model(**batch).loss",
    apply: |run| {
        run.training
            .keep_outputs
            .then(|| with(run, |changed| changed.training.keep_outputs = false))
    },
};
