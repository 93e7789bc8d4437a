//! Half the largest size of the data.

use super::{Cost, Group, Move, Results, less};

pub const MOVE: Move = Move {
    id: "half-size",
    title: "half the largest size of the data",
    group: Group::Size,
    what: "Halves the largest size of a declared network that only its inputs and tensors use, not its layers.",
    needs: "A declared network with such a size of 16 or more.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "The model or its loss sees less input.",
    source: "the declared network: the breakdown shows each tensor",
    caveat: "`model.dims` shows which size.",
    code: "the size with that name",
    apply: |run| {
        let network = run.model.network.as_ref()?;
        let sizes = network.sizes_of_data().into_iter();
        let sized = sizes.filter_map(|name| Some((run.model.dim(name)?, name)));
        let (_, largest) = sized.max()?;
        less(run, largest, (1, 2), 1, 8)
    },
};
