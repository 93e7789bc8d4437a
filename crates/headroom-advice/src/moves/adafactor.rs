//! Adafactor instead of Adam.

use super::adamw;
use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "adafactor",
    title: "Adafactor instead of Adam",
    group: Group::Optimizer,
    what: "Stores one row and one column of second moments per matrix instead of two full states.",
    needs: "AdamW.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Slower: many small kernels per tensor.",
    quality: "A different optimizer: the learning rate must be retuned.",
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
