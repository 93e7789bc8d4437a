//! Half the peaks of a spectrum.

use super::{Cost, Group, Move, Results, less};

pub const MOVE: Move = Move {
    id: "fewer-peaks",
    title: "half the peaks of a spectrum",
    group: Group::Size,
    what: "Attends over half the peaks; weak peaks are dropped.",
    needs: "A network over spectra with a `peaks` dimension.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "Weak peaks are lost.",
    source: "DreaMS training/pre_train.sh, n_highest_peaks",
    caveat: "The model sees less input.",
    code: "--n_highest_peaks",
    apply: |run| less(run, "peaks", (1, 2), 1, 16),
};
