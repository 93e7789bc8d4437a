//! Freeing the model's output before backward.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "drop-outputs",
    title: "drop the model's output before backward",
    group: Group::Outputs,
    what: "Frees the logits once the loss is computed; a loop that keeps `outputs` holds them during backward.",
    needs: "The loop keeps the model's output.",
    cost: Cost::Free,
    results: Results::Identical,
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
