//! Half the bins of the spectrum loss.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "fewer-bins",
    title: "half the bins of the spectrum loss",
    group: Group::Size,
    what: "Halves the width of the loss grid of batch x peaks x bins.",
    needs: "A network with a `bins` dimension.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "The loss resolves masses half as finely.",
    source: "pepTRM docs/memory_management.md",
    caveat: "The model gets less input.",
    code: "spectrum_loss.bins",
    apply: |run| less(run, "bins", (1, 2), 1, 64),
};
