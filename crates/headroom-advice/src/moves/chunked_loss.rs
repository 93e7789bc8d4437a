//! Cross-entropy in chunks.

use super::{Cost, Group, Move, Results, with};
use super::{own_loss, scales_logits, writes_text};
use headroom_scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "chunked-loss",
    title: "cross-entropy in chunks",
    group: Group::Loss,
    what: "The logits exist once; fp32 copies exist only for one chunk of tokens at a time.",
    needs: "A language model whose loss computes all logits at once, and whose head neither scales nor soft-caps them.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: false,
    speed: "As fast as before.",
    quality: "Identical up to rounding.",
    source: "torchtune modules/loss/ce_chunked_output_loss.py",
    caveat: "",
    code: "torchtune.modules.loss.CEWithChunkedOutputLoss()",
    apply: |run| {
        let possible = writes_text(run)
            && own_loss(run)
            && !scales_logits(run)
            && run.training.loss == LossKernel::Library;
        possible.then(|| {
            with(run, |changed| {
                changed.training.loss = LossKernel::ChunkedLoss;
            })
        })
    },
};
