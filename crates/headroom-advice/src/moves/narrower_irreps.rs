//! Half the features of each kind.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "half-irreps",
    title: "half the features of each irrep",
    group: Group::Size,
    what: "Halves the scalars, vectors and tensors of the hidden features: weights for each edge shrink to about a quarter.",
    needs: "A network over irreps: dimensions `0e`, `1o` and `2e`.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "A narrower model: train it anew.",
    source: "e3nn FullyConnectedTensorProduct: weight_numel",
    caveat: "A checkpoint of the wider model does not fit.",
    code: "--hidden_irreps '16x0e + 8x1o + 4x2e'",
    apply: |run| {
        let half = |run, name| less(run, name, (1, 2), 1, 2);
        half(&half(&half(run, "0e")?, "1o")?, "2e")
    },
};
