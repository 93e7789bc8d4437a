//! Half the keys that each query gathers.

use super::{Cost, Group, Move, Results, less};

pub const MOVE: Move = Move {
    id: "fewer-keys",
    title: "half the keys of each query",
    group: Group::Size,
    what: "Halves k_max: gathered keys and values shrink in proportion.",
    needs: "A network with a dimension `k_max`.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "Each query attends to fewer keys.",
    source: "gsa/attention/adaptive_topk.py",
    caveat: "k_base does nothing while k is adaptive.",
    code: "model.gsa.k_max",
    apply: |run| less(run, "k_max", (1, 2), 64, 64),
};
