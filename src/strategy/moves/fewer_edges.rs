//! Three quarters of the edges.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "fewer-edges",
    title: "three quarters of the edges",
    group: Group::Size,
    what: "A smaller cut-off radius or an edge budget for each batch: per-edge weights fall in proportion.",
    needs: "A graph network with a dimension `edges` or `nonbonded`.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "Long-range contacts are left out.",
    source: "e3nn tensor products: weights for each edge and path",
    caveat: "The model is given less.",
    code: "max_edges",
    apply: |s| {
        let bounded = |name| less(s, name, (3, 4), 1, 16);
        bounded("edges").or_else(|| bounded("nonbonded"))
    },
};
