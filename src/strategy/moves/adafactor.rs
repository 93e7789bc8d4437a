//! Adafactor in place of Adam.

use super::adamw;
use super::{Cost, Group, Move, with};
use crate::scenario::Optimizer;

pub const MOVE: Move = Move {
    id: "adafactor",
    title: "Adafactor in place of Adam",
    group: Group::Optimizer,
    what: "Keeps a row and a column of second moments for each matrix instead of two full states.",
    needs: "AdamW.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Slower: many small kernels for each tensor.",
    quality: "Another optimizer: its learning rate must be found anew.",
    source: "arXiv 1804.04235; transformers optimization.py",
    caveat: "",
    code: "transformers.optimization.Adafactor(params)",
    apply: |s| adamw(s).then(|| with(s, |it| it.training.optimizer = Optimizer::AdafactorHf)),
};
