//! Cross-entropy in chunks.

use super::language_model;
use super::{Cost, Group, Move, with};
use crate::scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "chunked-loss",
    title: "cross-entropy in chunks",
    group: Group::Loss,
    what: "The logits exist once; their fp32 copies only for one chunk of tokens at a time.",
    needs: "A language model whose loss makes all logits at once.",
    cost: Cost::Free,
    never_worse: false,
    speed: "As fast.",
    quality: "Equal up to rounding.",
    source: "torchtune modules/loss/ce_chunked_output_loss.py",
    caveat: "",
    code: "torchtune.modules.loss.CEWithChunkedOutputLoss()",
    apply: |s| {
        let possible = language_model(s) && s.training.loss == LossKernel::Library;
        possible.then(|| with(s, |it| it.training.loss = LossKernel::ChunkedLoss))
    },
};
