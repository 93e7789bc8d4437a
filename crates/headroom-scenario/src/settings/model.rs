//! The network.

use crate::setting::{Access, Setting, ValueType};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "model.id",
        key: "model",
        label: "Model",
        unit: "",
        value_type: ValueType::Model,
        help: "Type a name or a Hugging Face id.",
        memory: "Sets the weights and what every operation saves for backward.",
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
        memory: "Weights and activations are recomputed for the changed model by running its forward function.",
        access: Access::Sizes(|s| s.model.dims.clone(), |s, new| s.model.dims = new),
        parent: None,
    },
    Setting {
        path: "model.network",
        key: "network",
        label: "Declared network",
        unit: "",
        value_type: ValueType::Network,
        help: "Your own network in place of a catalogue model: sizes, blocks of layers, extra tensors (docs/scenario.md).",
        memory: "Runs as declared, operation by operation; extra tensors are counted for their declared lifetime.",
        access: Access::Network(|s| s.model.network.clone(), |s, new| s.model.network = new),
        parent: None,
    },
];
