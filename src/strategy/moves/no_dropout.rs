//! No dropout.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "no-dropout",
    title: "no dropout",
    group: Group::Dropout,
    what: "Masks and dropped copies are not made.",
    needs: "The network has dropout, and it is on.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: fewer kernels.",
    quality: "Less regularisation; large models are trained without.",
    source: "arXiv 2204.02311 section 5: trained without dropout",
    caveat: "Where the network has none it changes nothing.",
    code: "config.attention_dropout = config.hidden_dropout = 0.0",
    apply: |s| {
        s.training
            .dropout
            .then(|| with(s, |it| it.training.dropout = false))
    },
};
