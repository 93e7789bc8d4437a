//! Three quarters of the edges.

use super::{Cost, Group, Move, Results, less, with};
use headroom_core::estimate::{edges, frequent};
use headroom_scenario::{Case, Distribution};

pub const MOVE: Move = Move {
    id: "fewer-edges",
    title: "an edge budget, or three quarters of the edges",
    group: Group::Size,
    what: "A smaller cutoff radius or an edge budget per batch: per-edge weights shrink in proportion.",
    needs: "A graph network with a dimension `edges` or `nonbonded`.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "Long-range contacts are left out.",
    source: "e3nn tensor products: weights per edge and path",
    caveat: "The model sees less input.",
    code: "max_edges",
    apply: |run| {
        if run.data.distribution == Distribution::Varying && edges(&Case::of(run)).is_some() {
            // Beyond the 95th percentile batches hold fewer graphs; the largest graph still has one of its own.
            let most = frequent(run)?.max(run.data.max);
            let looser = run.data.batch_max == 0 || run.data.batch_max > most;
            return looser.then(|| with(run, |changed| changed.data.batch_max = most));
        }
        let bounded = |name| less(run, name, (3, 4), 1, 16);
        bounded("edges").or_else(|| bounded("nonbonded"))
    },
};
