//! Half the largest size of the data.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "half-size",
    title: "half the largest size of the data",
    group: Group::Size,
    what: "Halves the largest size that a declared network's inputs and tensors use and its layers do not.",
    needs: "A declared network with such a size of 16 or more.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "The model or its loss gets less input.",
    source: "the network as declared: the breakdown shows what each tensor keeps",
    caveat: "`model.dims` shows which size it is.",
    code: "the size of that name",
    apply: |run| {
        let network = run.model.network.as_ref()?;
        let sizes = network.sizes_of_data().into_iter();
        let sized = sizes.filter_map(|name| Some((run.model.dim(name)?, name)));
        let (_, largest) = sized.max()?;
        less(run, largest, (1, 2), 1, 8)
    },
};
