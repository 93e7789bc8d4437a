//! Half the largest size of a declared network's data.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "half-size",
    title: "half the largest size of the data",
    group: Group::Size,
    what: "Of the sizes that a declared network's inputs and tensors name and its layers do not, the largest is halved.",
    needs: "A declared network with such a size, of 16 or more.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "The model or its loss is given less.",
    source: "the network as it was declared: what each tensor keeps is in the breakdown",
    caveat: "Which size it is stands in `model.dims`.",
    code: "the size of that name",
    apply: |s| {
        let network = s.model.network.as_ref()?;
        let sizes = network.sizes_of_data().into_iter();
        let sized = sizes.filter_map(|name| Some((s.model.dim(name)?, name)));
        let (_, largest) = sized.max()?;
        less(s, largest, (1, 2), 1, 8)
    },
};
