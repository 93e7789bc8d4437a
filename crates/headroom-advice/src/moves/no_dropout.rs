//! No dropout.

use super::{Cost, Group, Move, Results, own_loss, with};

pub const MOVE: Move = Move {
    id: "no-dropout",
    title: "no dropout",
    group: Group::Dropout,
    what: "No masks and no dropped-out copies are saved.",
    needs: "A network with active dropout, trained on its own loss.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster: fewer kernels.",
    quality: "Less regularization; large models are usually trained without dropout.",
    source: "arXiv 2204.02311 section 5: trained without dropout",
    caveat: "Changes nothing in networks without dropout.",
    code: "config.attention_dropout = config.hidden_dropout = 0.0",
    apply: |run| {
        // Post-training trainers have no such setting.
        (run.training.dropout && own_loss(run))
            .then(|| with(run, |changed| changed.training.dropout = false))
    },
};
