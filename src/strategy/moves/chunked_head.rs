//! Logits and cross-entropy in checkpointed chunks.

use super::language_model;
use super::{Cost, Group, Move, with};
use crate::scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "chunked-head",
    title: "logits and cross-entropy in checkpointed chunks",
    group: Group::Loss,
    what: "Logits exist for one chunk of tokens at a time and are made again in backward.",
    needs: "A language model whose loss makes all logits at once.",
    cost: Cost::Time,
    never_worse: false,
    speed: "The head's product runs twice.",
    quality: "Equal up to rounding.",
    source: "TRL trainer/sft_trainer.py (loss_type chunked), arXiv 2411.09009 for the idea",
    caveat: "The output has no logits, so metrics computed from them need a pass of their own.",
    code: "trl.SFTConfig(loss_type=\"chunked_nll\")",
    apply: |s| {
        let possible = language_model(s) && s.training.loss == LossKernel::Library;
        possible.then(|| with(s, |it| it.training.loss = LossKernel::ChunkedCheckpoint))
    },
};
