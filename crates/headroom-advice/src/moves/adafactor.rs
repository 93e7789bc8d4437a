//! Adafactor in place of Adam.

use super::adamw;
use super::{Cost, Group, Move, with};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "adafactor",
    title: "Adafactor in place of Adam",
    group: Group::Optimizer,
    what: "Keeps one row and one column of second moments for each matrix instead of two full states.",
    needs: "AdamW.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Slower: many small kernels for each tensor.",
    quality: "A different optimizer: the learning rate has to be tuned again.",
    source: "arXiv 1804.04235; transformers optimization.py",
    caveat: "",
    code: "transformers.optimization.Adafactor(params)",
    apply: |run| {
        adamw(run).then(|| {
            with(run, |changed| {
                changed.training.optimizer = Optimizer::AdafactorHf;
            })
        })
    },
};
