//! Half the bins of the spectrum loss.

use super::{Cost, Group, Move, Results, less};

pub const MOVE: Move = Move {
    id: "fewer-bins",
    title: "half the bins of the spectrum loss",
    group: Group::Size,
    what: "Halves the last dimension of the batch x peaks x bins loss grid.",
    needs: "A network with a `bins` dimension.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "The loss resolves masses half as finely.",
    source: "pepTRM docs/memory_management.md",
    caveat: "The model sees less input.",
    code: "spectrum_loss.bins",
    apply: |run| less(run, "bins", (1, 2), 1, 64),
};
