//! What the `config.json` files of transformers mean, from `catalog/model-types.yaml` and `catalog/configurations.yaml`.

/// Keys and values as text; a key in a group is written behind the group's and a dot.
type Values = &'static [(&'static str, &'static str)];

/// A `model_type` that a network covers.
#[derive(Debug)]
pub struct ModelType {
    pub name: &'static str,
    /// The network; empty for a part of another configuration.
    pub arch: &'static str,
    /// The activation functions that the network runs; empty if the configuration does not choose one.
    pub activations: &'static [&'static str],
    /// Default sizes by the catalogue's names. `rotary_percent` is the share of a head that rotary
    /// embeddings turn.
    pub sizes: &'static [(&'static str, u64)],
    /// Values that the network has; a file with another value describes another network.
    pub fixed: Values,
    /// Configurations inside: key, default model type, and prefix of its sizes' names.
    pub parts: &'static [(&'static str, &'static str, &'static str)],
}

/// The configuration that one model of the catalogue is of.
#[derive(Debug)]
pub struct Configuration {
    pub model: &'static str,
    pub model_type: &'static str,
    /// Values that a file must have.
    pub required: Values,
    /// Values that it must have if it has the key.
    pub defaults: Values,
}

#[allow(clippy::unreadable_literal, reason = "written by the build script")]
mod data {
    use super::{Configuration, ModelType};

    include!(concat!(env!("OUT_DIR"), "/configurations.rs"));
}

/// The model types that networks cover.
pub fn model_types() -> &'static [ModelType] {
    data::MODEL_TYPES
}

/// The configurations that are known of single models.
pub fn configurations() -> &'static [Configuration] {
    data::CONFIGURATIONS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate as catalog;

    #[test]
    fn every_configuration_is_of_a_model_that_runs() {
        for configuration in configurations() {
            let id = configuration.model;
            assert!(catalog::model(id).is_some_and(|model| model.runs), "{id}");
            let values = configuration.required.len() + configuration.defaults.len();
            assert!(values >= 4, "{id}");
        }
    }
}
