//! The dimensions a model is built from.

use std::collections::BTreeMap;

use super::error::{ModelError, at_most};
use headroom_scenario::Irreps;

/// The limit of sizes that count modules: each module is run, so this bounds the time and memory that a size can cost.
const MOST_MODULES: u64 = 1_000;
/// The limit of module runs where several sizes multiply their number.
pub const MOST_RUNS: u64 = 20_000;
/// The limit of sizes that are only counted, and of all others. Forward functions multiply a few sizes of their own, which must
/// stay within a `u64` (what the tape multiplies saturates); ten layers of matrices of this width are 10^15 parameters.
const MOST_COUNTED: u64 = 1_000_000_000;
const MOST: u64 = 10_000_000;
const COUNTED: [&str; 12] = [
    "vocab",
    "buckets",
    "ctx",
    "nodes",
    "edges",
    "bonded",
    "nonbonded",
    "angles",
    "dihedrals",
    "text_vocab",
    "codec",
    "codec_buffers",
];
/// The endings of sizes that count modules or heads, or how often they run.
const COUNTS: [&str; 14] = [
    "layers",
    "layers_per_block",
    "depth",
    "depths",
    "steps",
    "ion_types",
    "experts",
    "spectra",
    "heads",
    "kv",
    "encoders",
    "modules",
    "blocks",
    "streams",
];

/// Lists of layers, of which dimensions tell by bits (`LayerSet` of the decoder).
fn is_set_of_layers(name: &str) -> bool {
    matches!(
        name,
        "v_features" | "v_global_layers" | "cross_layers" | "global_layers"
    )
}

/// A model's dimensions by name; most are one number, some (stages of a vision model) a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes(BTreeMap<String, Vec<u64>>);

impl Sizes {
    /// Sets a dimension to one number.
    pub fn set(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_string(), vec![value]);
    }

    /// Sets a dimension to a list, such as one number for each stage.
    pub fn set_list(&mut self, name: &str, values: Vec<u64>) {
        self.0.insert(name.to_string(), values);
    }

    /// Each name with its size, the first of a list.
    pub fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.keys().map(|name| (name.as_str(), self.or(name, 0)))
    }

    /// Refuses sizes too large to run. The limit of sizes that count modules is the lowest: each module costs time and memory.
    pub fn check_limits(&self) -> Result<(), ModelError> {
        // Irreps bound the sum of their sizes themselves.
        // Most sizes are small, whatever they are sizes of.
        let large = |values: &[u64]| values.iter().any(|value| *value > MOST_MODULES);
        let large = self.0.iter().filter(|(_, values)| large(values));
        for (name, values) in large.filter(|(name, _)| !Irreps::names(name)) {
            let counts = COUNTS.iter().any(|end| name.ends_with(end));
            let most = if counts {
                MOST_MODULES
            } else if COUNTED.contains(&name.as_str()) {
                MOST_COUNTED
            } else {
                MOST
            };
            for value in values {
                at_most(name, *value, most)?;
            }
        }
        Ok(())
    }

    /// A dimension that the model cannot do without.
    pub fn need(&self, name: &str) -> Result<u64, ModelError> {
        self.get(name)
            .ok_or_else(|| ModelError::MissingSize(name.to_string()))
    }

    /// A dimension, or the first number of a list; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(|all| all.first().copied())
    }

    /// A dimension, or the first number of a list; `default` if it is not set.
    pub fn or(&self, name: &str, default: u64) -> u64 {
        self.get(name).unwrap_or(default)
    }

    /// The same with other sizes where they are not given.
    pub fn with_defaults<const N: usize>(&self, defaults: [(&str, u64); N]) -> Self {
        let mut sizes = Self::from(defaults);
        sizes.0.extend(self.0.clone());
        sizes
    }

    /// Whether a trait of the model is on: set to anything but 0.
    pub fn is_set(&self, name: &str) -> bool {
        self.or(name, 0) != 0
    }

    /// All numbers of a dimension that the model cannot do without.
    pub fn list(&self, name: &str) -> Result<&[u64], ModelError> {
        self.0
            .get(name)
            .map(Vec::as_slice)
            .ok_or_else(|| ModelError::MissingList(name.to_string()))
    }

    /// The sizes of a catalogue entry.
    pub fn from_entry(entry: &headroom_catalog::ModelEntry) -> Self {
        let listed = entry.sizes();
        let mut sizes = Self(BTreeMap::new());
        for (name, values) in listed {
            sizes.set_list(name, values);
        }
        for name in entry.traits {
            sizes.set(name, 1);
        }
        sizes
    }

    /// Overrides dimensions. Irreps come all together: an override of one removes the others.
    pub fn extend(&mut self, over: &BTreeMap<String, u64>) {
        if over.keys().any(|name| Irreps::names(name)) {
            self.0.retain(|name, _| !Irreps::names(name));
        }
        for (name, value) in over {
            // `depths_0` is the first of the size `depths`, where that is a list.
            let element = name
                .rsplit_once('_')
                .filter(|(list, _)| !is_set_of_layers(list));
            let element = element.and_then(|(list, i)| {
                let all = self.0.get_mut(list).filter(|all| all.len() > 1)?;
                all.get_mut(i.parse::<usize>().ok()?)
            });
            match element {
                Some(element) => *element = *value,
                None => self.set(name, *value),
            }
        }
    }
}

impl<const N: usize> From<[(&str, u64); N]> for Sizes {
    fn from(all: [(&str, u64); N]) -> Self {
        let mut sizes = Self::default();
        for (name, value) in all {
            sizes.set(name, value);
        }
        sizes
    }
}
