//! Drop the model's output before backward.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "drop-outputs",
    title: "drop the model's output before backward",
    group: Group::Outputs,
    what: "Lets the logits go once the loss is there; a loop that keeps `outputs` holds them through backward.",
    needs: "The loop keeps the model's output.",
    cost: Cost::Free,
    never_worse: true,
    speed: "None.",
    quality: "None.",
    source: "PyTorch FAQ, \"My model reports cuda runtime error(2)\": https://docs.pytorch.org/docs/stable/notes/faq.html",
    caveat: "",
    code: "loss = model(**batch).loss",
    apply: |s| {
        s.training
            .keep_outputs
            .then(|| with(s, |it| it.training.keep_outputs = false))
    },
};
