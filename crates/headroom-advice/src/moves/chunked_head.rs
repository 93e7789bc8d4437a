//! Logits and cross-entropy in checkpointed chunks.

use super::{Cost, Group, Move, Results, with};
use super::{own_loss, writes_text};
use headroom_scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "chunked-head",
    title: "logits and cross-entropy in checkpointed chunks",
    group: Group::Loss,
    what: "Logits exist for one chunk of tokens at a time and are recomputed in backward.",
    needs: "A language model whose loss computes all logits at once.",
    cost: Cost::Time,
    results: Results::Rounding,
    never_worse: false,
    speed: "The output projection runs twice.",
    quality: "Identical up to rounding.",
    source: "TRL trainer/sft_trainer.py (loss_type chunked), arXiv 2411.09009 for the idea",
    caveat: "The model returns no logits, so metrics based on them need a separate pass.",
    code: "trl.SFTConfig(loss_type=\"chunked_nll\")",
    apply: |run| {
        let possible =
            writes_text(run) && own_loss(run) && run.training.loss == LossKernel::Library;
        possible.then(|| {
            with(run, |changed| {
                changed.training.loss = LossKernel::ChunkedCheckpoint;
            })
        })
    },
};
