//! Half the features of each kind.

use super::{Cost, Group, Move, Results, less};

pub const MOVE: Move = Move {
    id: "half-irreps",
    title: "half the features of each irrep",
    group: Group::Size,
    what: "Halves the scalars, vectors and tensors of the hidden features: per-edge weights shrink to about a quarter.",
    needs: "A network over irreps: dimensions `0e`, `1o` and `2e`.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "A narrower model, to be trained from scratch.",
    source: "e3nn FullyConnectedTensorProduct: weight_numel",
    caveat: "Checkpoints of the wider model cannot be loaded.",
    code: "--hidden_irreps '16x0e + 8x1o + 4x2e'",
    apply: |run| {
        let half = |run, name| less(run, name, (1, 2), 1, 2);
        half(&half(&half(run, "0e")?, "1o")?, "2e")
    },
};
