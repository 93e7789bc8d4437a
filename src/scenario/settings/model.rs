//! The network.

use crate::scenario::setting::{Access, Setting, ValueType};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "model.id",
        key: "model",
        label: "Model",
        unit: "",
        value_type: ValueType::Model,
        help: "The network, by its catalogue id.",
        memory: "Decides the weights and what every operation keeps for backward.",
        access: text!(model.id),
        parent: None,
    },
    Setting {
        path: "model.dims",
        key: "dims",
        label: "Changed dimensions",
        unit: "",
        value_type: ValueType::Sizes,
        help: "Dimensions that differ from the catalogue's, such as layers=2,vocab=1000.",
        memory: "A changed model: weights and activations are counted anew from its forward function.",
        access: Access::Sizes(|s| s.model.dims.clone(), |s, it| s.model.dims = it),
        parent: None,
    },
    Setting {
        path: "model.network",
        key: "network",
        label: "Declared network",
        unit: "",
        value_type: ValueType::Network,
        help: "A network of your own in place of the catalogue's: sizes, parts of layers, further tensors (docs/scenario.md).",
        memory: "Runs as declared, operation by operation; tensors that no layer makes are counted for the time they say.",
        access: Access::Network(|s| s.model.network.clone(), |s, it| s.model.network = it),
        parent: None,
    },
];
